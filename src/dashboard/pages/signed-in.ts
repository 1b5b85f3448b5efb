import { listInvitationsOf } from '../../store/accounts/invitations.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { Redirect } from '../page.ts';
import { safeNext } from '../session.ts';

interface NewSession {
  readonly token: string;
  readonly userId: string;
  /** A token for the cookie of a known browser. */
  readonly browser?: string;
  /** Null removes the cookie of a sign-in at the issuer. */
  readonly oidcFlow?: null;
}

/** Leads a user who has just signed in to the requested page. */
export async function signedIn(
  pool: Pool,
  { userId, ...cookies }: NewSession,
  next: string | undefined,
): Promise<Redirect> {
  const { length: invitations } = await listInvitationsOf(pool, userId);
  const flash = 'You have an open invitation. Accept or decline it on your account page.';
  return new Redirect(safeNext(next), { ...cookies, ...(invitations > 0 && { flash }) });
}
