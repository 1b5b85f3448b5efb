import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { linkToUser, signInByOidc } from '../../src/accounts/oidc-sign-in.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createReset, resetPassword } from '../../src/accounts/password-reset.ts';
import { createSession } from '../../src/accounts/sign-in.ts';
import { resetUser } from '../../src/accounts/user-accounts.ts';
import { changePassword, createUser, recoverAccount } from '../../src/accounts/users.ts';
import { insertIdentity } from '../../src/store/accounts/oidc-identities.ts';
import { findUser, lockPassword, setPassword, type User } from '../../src/store/accounts/users.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { countBlocked, waitForBlocked } from '../support/locks.ts';

const { pool } = await useDatabase();
const { id: orgId } = await createOrganization(pool, 'An organization');
const CLIENT = { address: '192.0.2.1', userAgent: undefined };
const PASSWORD = 'known to another person';

let count = 0;

/** An unconfirmed account with a session of another person, who knows its password. */
async function account(organizationId = orgId) {
  const email = `holder${++count}@example.com`;
  const { id } = await createUser(pool, organizationId, { email, password: PASSWORD });
  await pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [id]);
  const identity = { issuer: 'https://login.example.com', subject: email, email: null };
  return { user: { id, email, name: '' }, token: await createSession(pool, id, CLIENT), identity };
}

/** Takes the account over, and commits only when `request` has ended or waits for a lock. */
async function takeOverDuring(userId: string, request: () => Promise<unknown>): Promise<void> {
  const user = (await findUser(pool, userId)) ?? assert.fail('there is no user');
  const pending = await transaction(pool, async (client) => {
    await recoverAccount(client, user, 'the new hash');
    let isOver = false;
    const ended = request().finally(() => (isOver = true));
    ended.catch(() => undefined);
    await eventually('the request to end or wait', async () => isOver || (await countBlocked(pool)) === 1);
    return { ended };
  });
  await assert.rejects(pending.ended);
}

/** Changes the password in a transaction during which a reset by a link begins. @returns what the reset returned */
async function changeDuringReset(userId: string, link: string): Promise<boolean> {
  const { ended } = await transaction(pool, async (client) => {
    await lockPassword(client, userId);
    const reset = resetPassword(pool, link, 'chosen by the holder');
    reset.catch(() => undefined);
    await waitForBlocked(pool);
    await setPassword(client, userId, 'the changed hash');
    return { ended: reset };
  });
  return ended;
}

const countOf = async (table: 'sessions' | 'oidc_identities', userId: string) =>
  (await pool.query(`SELECT FROM ${table} WHERE user_id = $1`, [userId])).rowCount;

describe('the takeover of an account', () => {
  it('keeps its password although the former one was being changed', async () => {
    const { user, token } = await account();
    const passwords = { current: PASSWORD, password: 'chosen by another person' };
    await takeOverDuring(user.id, () => changePassword(pool, user, passwords, token));
    assert.equal((await findUser(pool, user.id))?.password, 'the new hash');
  });

  it('leaves no identity that was being linked', async () => {
    const { user, token, identity } = await account();
    await takeOverDuring(user.id, () => linkToUser(pool, identity, { user, organizations: [], token }));
    assert.equal(await countOf('oidc_identities', user.id), 0);
  });

  it('leaves no session that was beginning by an identity that it removes', async () => {
    const { user, identity } = await account();
    await insertIdentity(pool, identity, user.id);
    await takeOverDuring(user.id, () => signInByOidc(pool, identity, CLIENT));
    assert.equal(await countOf('sessions', user.id), 0);
  });
});

/** An account with a confirmed address and an identity, of which the issuer confirms no address. */
async function confirmedAccount(organizationId: string) {
  const made = await account(organizationId);
  await pool.query('UPDATE users SET proved_at = now() WHERE id = $1', [made.user.id]);
  await insertIdentity(pool, made.identity, made.user.id);
  return made;
}

const resets = {
  'a reset by link': async (user: User) =>
    resetPassword(pool, (await createReset(pool, user.email)) ?? '', 'chosen by the holder'),
  'a reset by the operator': (user: User) => resetUser(pool, user, 'chosen by the operator'),
};
for (const [name, reset] of Object.entries(resets)) {
  describe(`${name} of a confirmed account`, () => {
    it('unlinks its identity, which a person with a stolen password may have linked', async () => {
      const { user, identity } = await confirmedAccount(orgId);
      await reset(user);
      await assert.rejects(signInByOidc(pool, identity, CLIENT), { code: 'insufficient_scope' });
      const own = { ...identity, subject: `${identity.subject} of the holder`, email: user.email };
      assert.equal((await signInByOidc(pool, own, CLIENT)).userId, user.id);
    });

    it('keeps its identity if an organization of the user requires OpenID Connect, so that the user can sign in there', async () => {
      const { id } = await createOrganization(pool, 'Strict');
      const { user, identity } = await confirmedAccount(id);
      await pool.query('UPDATE organizations SET requires_oidc = true WHERE id = $1', [id]);
      await reset(user);
      assert.equal((await signInByOidc(pool, identity, CLIENT)).userId, user.id);
    });
  });
}

describe('a change of the password', () => {
  it('ends the link of a reset that begins meanwhile, without a deadlock', async () => {
    const { user } = await account();
    const link = await createReset(pool, user.email);
    assert.equal(await changeDuringReset(user.id, link ?? ''), false);
    assert.equal((await findUser(pool, user.id))?.password, 'the changed hash');
  });

  it('is made once if two with the same current password run concurrently', async () => {
    const { user, token } = await account();
    const change = (password: string) => changePassword(pool, user, { current: PASSWORD, password }, token);
    const results = await Promise.allSettled([change('the first password'), change('the second password')]);
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  });
});
