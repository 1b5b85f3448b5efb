import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptInvitation, invite } from '../../src/accounts/invitations.ts';
import { type Attempt, countAttempt } from '../../src/accounts/sign-in-limits.ts';
import { trySignIn } from '../dashboard/try-sign-in.ts';
import { useDatabase } from '../support/database.ts';
import { assertFailed, assertMisused, command, printed as printedWith, runProcess } from './command-line.ts';

const ABSENT = `org_${'0'.repeat(26)}`;

const database = await useDatabase();
const env = { DATABASE_URL: database.url };
const admin = (...args: string[]) => command(args, env);
const printed = <T = Record<string, unknown>>(...args: string[]) => printedWith<T>(args, env);

/** From the network of `trySignIn`. */
function attemptOf(email: string): Attempt {
  return { email, address: '192.0.2.1', browserId: undefined };
}

describe('user create', () => {
  const org = async () => (await printed<{ id: string }>('organization', 'create', '--name=Users')).id;
  const argsOf = (id: string, email: string) => ['user', 'create', '--organization', id, '--email', email];
  const withInput = (id: string, email: string, input: string) => command(argsOf(id, email), env, input);

  it('generates a password and prints it', async () => {
    const made = await printed('user', 'create', '--organization', await org(), '--email', 'Ada@Example.net');
    assert.deepEqual(Object.keys(made), ['id', 'email', 'password']);
    assert.match(String(made['id']), /^usr_[0-9a-z]{26}$/);
    assert.equal(made['email'], 'ada@example.net');
    assert.equal(await trySignIn(database.pool, 'ada@example.net', String(made['password'])), 'signed_in');
  });

  it('reads the password from a pipe, reports that and does not print it', async () => {
    const { code, out, err } = await runProcess(argsOf(await org(), 'grace@example.net'), env, {
      input: 'päss word 1\n',
    });
    assert.deepEqual([code, err], [0, 'The password was read from standard input.\n']);
    assert.deepEqual(Object.keys(JSON.parse(out) as object), ['id', 'email']);
    assert.equal(await trySignIn(database.pool, 'grace@example.net', 'päss word 1'), 'signed_in');
  });

  it('continues after 3 s without input from an open pipe', async () => {
    const { code, out, err } = await runProcess(argsOf(await org(), 'bob@example.net'), env, {});
    assert.equal(code, 0, err);
    assert.equal(err, 'No input arrived on standard input within 3 s; continuing without it.\n');
    assert.deepEqual(Object.keys(JSON.parse(out) as object), ['id', 'email', 'password']);
  });

  it('invites a user of another organization, who keeps the password', async () => {
    const [one, two] = [await org(), await org()];
    const create = (id: string, input: string) => withInput(id, 'both@example.net', input);
    assert.equal((await create(one, 'a password')).code, 0);
    assertFailed(await create(two, 'another one'), 'email: has a password already; add the user without one');
    const invited = JSON.parse((await create(two, '')).out) as { invitation: Record<string, unknown> };
    assert.deepEqual(Object.keys(invited), ['id', 'email', 'invitation']);
    assert.deepEqual(Object.keys(invited.invitation), ['id', 'role', 'expires_at']);
    assert.equal(invited.invitation['role'], 'member');
    assertFailed(await create(one, ''), 'email: is a member of the organization already');
    const members = await printed<unknown[]>('user', 'list', '--organization', two);
    assert.deepEqual(members, []);
    assert.equal(await trySignIn(database.pool, 'both@example.net', 'a password'), 'signed_in');
  });

  it('takes an unconfirmed account over with --reset-password only', async () => {
    const [attacker, victim] = [await org(), await org()];
    const { token } = await invite(database.pool, attacker, 'cto@victim.example', 'viewer');
    const { userId } = await acceptInvitation(database.pool, token, { name: '', password: 'known to others' });
    const args = ['user', 'create', '--organization', victim, '--email', 'cto@victim.example'];
    const refused = await admin(...args);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /^email: has an account that was created from an invitation link, .* --reset-password/);
    assert.deepEqual(await printed<unknown[]>('user', 'list', '--organization', victim), []);
    const made = await printed(...args, '--reset-password', '--role', 'owner');
    assert.deepEqual([made['id'], Object.keys(made)], [userId, ['id', 'email', 'password']]);
    assert.equal(await trySignIn(database.pool, 'cto@victim.example', 'known to others'), 'wrong_credentials');
    assert.equal(await trySignIn(database.pool, 'cto@victim.example', String(made['password'])), 'signed_in');
  });

  it('fails with one line about the mistake', async () => {
    assertFailed(await withInput(ABSENT, 'x@example.net', ''), `organization: there is no organization ${ABSENT}`);
    assertFailed(await withInput(await org(), 'nobody', ''), 'email: must be local@domain or Name <local@domain>');
    assertFailed(await withInput(await org(), 'x@example.net', 'short'), 'password: must be 8 to 200 characters');
  });
});

describe('user list, reset, unlock, sign-out and delete', () => {
  const create = async (email: string, ...more: string[]) => {
    const { id: organization } = await printed<{ id: string }>('organization', 'create', '--name=Users');
    const made = await printed('user', 'create', '--organization', organization, '--email', email, ...more);
    return { organization, id: String(made['id']), password: String(made['password']) };
  };

  it('list shows users with their roles, and whether they are confirmed', async () => {
    const { organization, id } = await create('listed@example.net', '--role', 'viewer');
    const [listed, ...more] = await printed<Record<string, unknown>[]>('user', 'list', '--organization', organization);
    assert.deepEqual(more, []);
    const { proved_at: provedAt, created_at: createdAt, ...rest } = listed ?? {};
    assert.equal(provedAt, createdAt);
    const organizations = [{ id: organization, role: 'viewer' }];
    assert.deepEqual(rest, { id, email: 'listed@example.net', name: '', organizations });
    const all = await printed<Record<string, unknown>[]>('user', 'list');
    assert.ok(all.some((user) => user['id'] === id));
    assertFailed(
      await admin('user', 'list', '--organization', ABSENT),
      `organization: there is no organization ${ABSENT}`,
    );
  });

  it('reset sets a new password, ends sessions, removes limits and is in the audit log', async () => {
    const { organization, id, password } = await create('forgot@example.net');
    assert.equal(await trySignIn(database.pool, 'forgot@example.net', password), 'signed_in');
    for (let i = 0; i < 11; i++) await countAttempt(database.pool, attemptOf('forgot@example.net'));
    const reset = await printed('user', 'reset', '--email', 'Forgot@example.net');
    assert.deepEqual(Object.keys(reset), ['id', 'email', 'password', 'sessions_ended']);
    assert.equal(reset['sessions_ended'], 1);
    assert.equal(await trySignIn(database.pool, 'forgot@example.net', password), 'wrong_credentials');
    assert.equal(await trySignIn(database.pool, 'forgot@example.net', String(reset['password'])), 'signed_in');
    const { rows } = await database.pool.query(
      `SELECT actor_kind, actor_id, target FROM audit_log WHERE org_id = $1 AND action = 'members.reset'`,
      [organization],
    );
    assert.deepEqual(rows, [{ actor_kind: 'system', actor_id: 'admin', target: id }]);
  });

  it('unlock lets a user try again who has reached a limit', async () => {
    const { id, password } = await create('locked@example.net');
    for (let i = 0; i < 11; i++) await countAttempt(database.pool, attemptOf('locked@example.net'));
    assert.equal(await trySignIn(database.pool, 'locked@example.net', password), 'rate_limited');
    const unlocked = await printed('user', 'unlock', '--user', id);
    assert.deepEqual(unlocked, { id, email: 'locked@example.net', cleared: 3 });
    assert.equal(await trySignIn(database.pool, 'locked@example.net', password), 'signed_in');
  });

  it('sign-out ends all sessions', async () => {
    const { id, password } = await create('out@example.net');
    for (let i = 0; i < 2; i++) await trySignIn(database.pool, 'out@example.net', password);
    const out = await printed('user', 'sign-out', '--user', id);
    assert.deepEqual(out, { id, email: 'out@example.net', sessions_ended: 2 });
  });

  it('delete removes a user, but the only owner of an organization with --force only', async () => {
    const { organization, id, password } = await create('gone@example.net');
    await trySignIn(database.pool, 'gone@example.net', password);
    const refused = `is the only owner of ${organization}; make another member an owner first, or add --force`;
    assertFailed(await admin('user', 'delete', '--user', id), refused);
    const removed = await printed('user', 'delete', '--user', id, '--force');
    assert.deepEqual(removed, { id, email: 'gone@example.net', organizations: [organization] });
    assert.equal(await trySignIn(database.pool, 'gone@example.net', password), 'wrong_credentials');
    assertFailed(await admin('user', 'delete', '--email', 'gone@example.net'), 'email: there is no such user');
  });

  it('select one user by id or address', async () => {
    await assertMisused(['user', 'reset'], '--user or --email is missing', 'user reset', env);
    const both = ['user', 'unlock', '--user', 'x', '--email', 'x@example.net'];
    await assertMisused(both, "option '--email <address>' cannot be used with option '--user <id>'", 'user unlock');
    assertFailed(await admin('user', 'unlock', '--user', 'x'), 'user: there is no such user');
  });
});
