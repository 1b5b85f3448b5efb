import { listInvitationsOf } from '../../store/accounts/invitations.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { Redirect } from '../page.ts';
import { safeNext } from '../session.ts';

interface NewSession {
  readonly token: string;
  readonly userId: string;
  /** A new token for the known-browser cookie. */
  readonly browser?: string;
  /** Null removes the cookie of a sign-in at the identity provider. */
  readonly oidcFlow?: null;
}

/** Redirects a user who has just signed in to the requested page, with the new cookies and a hint about open invitations. */
export async function signedIn(
  pool: Pool,
  { userId, ...cookies }: NewSession,
  next: string | undefined,
): Promise<Redirect> {
  const { length: invitations } = await listInvitationsOf(pool, userId);
  const flash = 'You have an open invitation. Accept or decline it on your account page.';
  return new Redirect(safeNext(next), { ...cookies, ...(invitations > 0 && { flash }) });
}
