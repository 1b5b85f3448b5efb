import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import {
  type Attempt,
  clearPasswordLimits,
  countAttempt,
  countCheck,
  countInvitation,
  countNotice,
  countResetRequest,
  recordSuccess,
  resetChecks,
  unlock,
} from '../../src/accounts/sign-in-limits.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
beforeEach(() => pool.query('DELETE FROM sign_in_attempts'));

const EMAIL = 'ada@example.com';
const from = (address: string, email = EMAIL, browserId?: string): Attempt => ({ email, address, browserId });
const isLimited = async (attempt: Attempt) => (await countAttempt(pool, attempt)) !== undefined;
const kinds = async () => {
  const { rows } = await pool.query<{ kind: string; attempts: number }>(
    `SELECT kind, sum(attempts)::int AS attempts FROM sign_in_attempts GROUP BY kind ORDER BY kind`,
  );
  return Object.fromEntries(rows.map(({ kind, attempts }) => [kind, attempts]));
};
/** How many of so many attempts are let through. */
async function countAllowed(count: number, attempt: (i: number) => Attempt): Promise<number> {
  let passed = 0;
  for (let i = 0; i < count; i++) if (!(await isLimited(attempt(i)))) passed++;
  return passed;
}

describe('failed sign-ins', () => {
  it('are limited to 10 in 15 minutes for one email and network; another network is not locked', async () => {
    assert.equal(await countAllowed(12, () => from('203.0.113.1')), 10);
    assert.equal(await isLimited(from('203.0.113.2')), false);
    assert.deepEqual(await kinds(), { network: 13, network_day: 13, pair: 13, pair_day: 13, email: 11 });
  });

  it('count the addresses of an IPv6 /64 as one, and an IPv4-mapped address as its IPv4 address', async () => {
    assert.equal(await countAllowed(12, (i) => from(`2001:db8:1:2:${i}::1`)), 10);
    assert.equal(await isLimited(from('2001:db8:1:3::1')), false);
    assert.equal(await countAllowed(12, (i) => from(i % 2 ? '203.0.113.1' : '::ffff:203.0.113.1')), 10);
  });

  it('are limited to 60 in 15 minutes for one network, and add no rows of emails after that', async () => {
    assert.equal(await countAllowed(100, (i) => from('203.0.113.1', `random-${i}@example.com`)), 60);
    const { rows } = await pool.query(`SELECT count(*)::int AS rows FROM sign_in_attempts`);
    assert.deepEqual(rows, [{ rows: 182 }]);
  });

  it('cannot exhaust the limit of an email from one network, even in a day', async () => {
    for (let quarter = 0; quarter < 96; quarter++) {
      await countAllowed(12, () => from('203.0.113.1'));
      await pool.query(`UPDATE sign_in_attempts SET expires_at = now() WHERE kind IN ('pair', 'network')`);
    }
    assert.ok(((await kinds())['email'] ?? 0) <= 50, 'what one network adds');
    assert.equal(await isLimited(from('203.0.113.2')), false);
  });

  it('are limited to 250 in a day for one email from many networks, and do not lock a known browser', async () => {
    assert.equal(await countAllowed(300, (i) => from(`203.0.${i}.1`)), 250);
    assert.equal(await isLimited(from('198.51.100.1')), true);
    assert.equal(await isLimited(from('198.51.100.1', EMAIL, 'a-browser')), false);
    assert.equal(await countAllowed(12, () => from('198.51.100.1', EMAIL, 'a-browser')), 9);
    assert.ok((await unlock(pool, EMAIL)) > 250);
    assert.equal(await isLimited(from('198.51.100.1')), false);
  });

  it('end with their window, by the database’s clock', async () => {
    await countAllowed(12, () => from('203.0.113.1'));
    const seconds = (await countAttempt(pool, from('203.0.113.1'))) ?? 0;
    assert.ok(seconds > 0 && seconds <= 900, String(seconds));
    await pool.query(`UPDATE sign_in_attempts SET expires_at = now() WHERE kind = 'pair'`);
    assert.equal(await isLimited(from('203.0.113.1')), false);
  });

  it('are forgiven in the same place after a success, and elsewhere not', async () => {
    await countAllowed(5, () => from('203.0.113.1'));
    await countAllowed(5, () => from('203.0.113.2'));
    await countAttempt(pool, from('203.0.113.1'));
    await recordSuccess(pool, from('203.0.113.1'));
    assert.deepEqual(await kinds(), { network: 10, network_day: 10, pair: 5, pair_day: 5, email: 10 });
  });

  it('in a burst are counted one by one', async () => {
    const results = await Promise.all(Array.from({ length: 30 }, () => isLimited(from('203.0.113.1'))));
    assert.equal(results.filter((limited) => !limited).length, 10);
  });
});

describe('a limit by day', () => {
  const user = { id: 'usr_1', email: EMAIL };
  /** Ends all windows that are shorter than a day, 96 times. @returns how many attempts are let through in that day */
  async function countAllowedInADay(attempt: (i: number) => Promise<boolean>): Promise<number> {
    let passed = 0;
    for (let quarter = 0; quarter < 96; quarter++) {
      for (let i = 0; i < 4; i++) if (await attempt(4 * quarter + i)) passed++;
      await pool.query(`UPDATE sign_in_attempts SET expires_at = now() WHERE expires_at < now() + interval '2 hours'`);
    }
    return passed;
  }
  const passes = async (wait: Promise<number | undefined>) => (await wait) === undefined;

  it('exists for everything that is counted in a shorter window', async () => {
    await countAttempt(pool, from('203.0.113.1'));
    await countAttempt(pool, from('203.0.113.1', EMAIL, 'a-browser'));
    await countResetRequest(pool, EMAIL, '203.0.113.1');
    await countInvitation(pool, 'org', EMAIL, true);
    await countNotice(pool, EMAIL, 'a topic');
    for (const check of ['password', 'code'] as const) await countCheck(pool, check, user);
    const { rows } = await pool.query<{ kind: string; is_short: boolean }>(
      `SELECT kind, expires_at < now() + interval '23 hours' AS is_short FROM sign_in_attempts`,
    );
    const kinds = rows.map(({ kind }) => kind);
    const short = rows.filter(({ is_short: isShort }) => isShort).map(({ kind }) => kind);
    assert.ok(short.length >= 7, short.join());
    for (const kind of short) assert.ok(kinds.includes(`${kind}_day`), kind);
  });

  it('stops patient guesses from a known browser, of a password and of a code', async () => {
    assert.equal(
      await countAllowedInADay(() => passes(countAttempt(pool, from('203.0.113.1', EMAIL, 'a-browser')))),
      50,
    );
    for (const [check, allowed] of [
      ['password', 50],
      ['code', 30],
    ] as const) {
      const attempt = async () => (await countCheck(pool, check, user)).waitSecondsOfDay === undefined;
      assert.equal(await countAllowedInADay(attempt), allowed, check);
    }
  });

  it('of codes stays after a success, which subtracts only itself', async () => {
    for (let i = 0; i < 6; i++) await countCheck(pool, 'code', user);
    await resetChecks(pool, 'code', user);
    assert.deepEqual(await kinds(), { code_day: 5 });
  });

  it('of codes is cleared by at most two password resets a day, and stays otherwise', async () => {
    for (const left of [0, 0, 1]) {
      await countCheck(pool, 'code', user);
      await clearPasswordLimits(pool, EMAIL);
      assert.equal((await kinds())['code_day'] ?? 0, left);
    }
  });

  it('of invitations is 20 until somebody has accepted one, then 200', async () => {
    const invite = (org: string, isNew: boolean) => async (i: number) =>
      passes(countInvitation(pool, org, `stranger${i}@example.com`, isNew));
    assert.equal(await countAllowedInADay(invite('new', true)), 20);
    assert.equal(await countAllowedInADay(invite('old', false)), 200);
  });
});
