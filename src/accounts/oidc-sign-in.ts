import { ServiceError } from '../domain/errors.ts';
import { insertAuditOfUser } from '../store/accounts/audit.ts';
import { hasInvitation } from '../store/accounts/invitations.ts';
import { findIdentityUser, insertIdentity } from '../store/accounts/oidc-identities.ts';
import type { SessionClient } from '../store/accounts/sessions.ts';
import { findUserByEmail, type User } from '../store/accounts/users.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import type { OidcIdentity } from './oidc.ts';
import { generatePassword } from './passwords.ts';
import { noteFailure, startSession } from './sign-in.ts';
import { addUser, newPasswordHash, newUser, takeOver } from './users.ts';

interface OidcSignIn {
  /** Of the session. */
  readonly token: string;
  readonly userId: string;
  /** Whether the user was created now, and so is a member of no organization yet. */
  readonly isNew: boolean;
}

/**
 * Starts a session for an identity. One that is not linked yet is linked to the user of its verified address, or to a new user
 * if the address is invited. The second factor is left to the issuer.
 * @throws ServiceError insufficient_scope when the identity belongs to no user
 */
export async function signInByOidc(
  pool: Pool,
  identity: OidcIdentity,
  { address, userAgent }: SessionClient,
): Promise<OidcSignIn> {
  const linked = await findIdentityUser(pool, identity);
  const { user, isNew } = linked ? { user: linked, isNew: false } : await linkIdentity(pool, identity, address);
  const token = await startSession(pool, user, { address, userAgent, byOidc: true }, { address, oidc: true });
  return { token, userId: user.id, isNew };
}

async function linkIdentity(
  pool: Pool,
  identity: OidcIdentity,
  address: string,
): Promise<{ user: User; isNew: boolean }> {
  const { email } = identity;
  if (email === null) throw refused('your identity provider does not confirm your email address');
  const known = await findUserByEmail(pool, email);
  if (known) {
    // Another person may have created the account by a link that was shown, and know its password.
    const hash = known.proved_at === null ? await newPasswordHash(generatePassword()) : undefined;
    const isLinked = await transaction(pool, async (client) => {
      if (!(await link(client, identity, known))) return false;
      if (hash !== undefined) await takeOver(client, known, hash);
      return true;
    });
    if (isLinked) return { user: known, isNew: false };
    // The issuer may have given the address to another person, who must not get the account.
    await noteFailure(pool, known, { address, oidc: true, reason: 'another identity is linked' });
    throw refused(
      `another identity is linked to the account of ${email}; ask the operator of this service to unlink it`,
    );
  }
  if (!(await hasInvitation(pool, email))) throw refused(`no account has the address ${email}; ask for an invitation`);
  const added = await newUser(email, '', generatePassword());
  await transaction(pool, async (client) => {
    await addUser(client, added, true);
    await link(client, identity, added);
  });
  return { user: added, isNew: true };
}

/** @returns false if the user has another identity of the issuer */
async function link(db: Db, identity: OidcIdentity, { id }: User): Promise<boolean> {
  if (!(await insertIdentity(db, identity, id))) return false;
  const change = { action: 'account.link-oidc', target: id, detail: { issuer: identity.issuer } };
  await insertAuditOfUser(db, id, { actor_kind: 'user', actor_id: id, ...change });
  return true;
}

function refused(why: string): ServiceError {
  return new ServiceError('insufficient_scope', why);
}
