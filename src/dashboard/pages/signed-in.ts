import { digest } from '../../lib/digest.ts';
import { listInvitationsOf } from '../../store/accounts/invitations.ts';
import { deleteSession } from '../../store/accounts/sessions.ts';
import { Redirect, type Visit } from '../page.ts';
import { safeNext } from '../session.ts';

interface NewSession {
  readonly token: string;
  readonly userId: string;
  /** A new token for the known-browser cookie. */
  readonly browser?: string;
  /** Null removes the cookie of a sign-in at the identity provider. */
  readonly oidcFlow?: null;
}

/**
 * Ends the previous session of a user who has just signed in, and redirects to the requested page with the new cookies and a
 * hint about open invitations.
 */
export async function signedIn(
  { pool, session }: Visit,
  { userId, ...cookies }: NewSession,
  next: string | undefined,
): Promise<Redirect> {
  // Prevents session fixation: an attacker may know the token of the previous session.
  if (session) await deleteSession(pool, digest(session.token));
  const { length: invitations } = await listInvitationsOf(pool, userId);
  const flash = 'You have an open invitation. Accept or decline it on your account page.';
  return new Redirect(safeNext(next), { ...cookies, ...(invitations > 0 && { flash }) });
}
