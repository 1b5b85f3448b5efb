import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RateLimitExceeded, type RateLimit, startRateLimits } from '../../src/intake/rate-limits.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { proxiedPool } from '../store/proxy.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { unstalledMs } from '../support/unstalled-time.ts';

const database = await useDatabase(5);

/** The limits of one process; those of several share the database. */
function start(t: TestContext, requests: number, mails = 0, pool = database.pool) {
  const errors: unknown[] = [];
  const limits = startRateLimits(pool, { requests, mails }, (error) => errors.push(error));
  t.after(limits.stop);
  return { ...limits, errors };
}

/** How many tokens it gives, one by one, before it refuses. */
function drain(limit: RateLimit | null, org: string): number {
  for (let given = 0; ; given++) if (!gives(limit, org)) return given;
}

function gives(limit: RateLimit | null, org: string): boolean {
  try {
    limit?.take(org, 1);
    return true;
  } catch (error) {
    assert.ok(error instanceof RateLimitExceeded, String(error));
    assert.ok((error.retryAfterSeconds ?? 0) >= 1, 'it states when to retry');
    return false;
  }
}

const shared = async (org: string): Promise<number | undefined> => {
  const { rows } = await database.pool.query<{ debt: number }>('SELECT debt FROM rate_debts WHERE org_id = $1', [org]);
  return rows[0]?.debt;
};

describe('limits that processes share', () => {
  it('tokens that one process has given are gone for the others', async (t) => {
    const [one, two] = [start(t, 1), start(t, 1)];
    assert.equal(drain(one.requests, 'org_gone'), 2);
    await eventually('shared', async () => (await shared('org_gone')) !== undefined);
    // It learns of it when somebody asks: until the next exchange it may let one burst through.
    let given = 0;
    await eventually('more is owed than the other has given', () => {
      gives(one.requests, 'org_gone');
      if (gives(two.requests, 'org_gone')) given++;
      return (two.requests?.state('org_gone').resetSeconds ?? 0) > given;
    });
    assert.equal(two.requests?.state('org_gone').remaining, 0, 'the answer states it');
  });

  it('tokens above the rate are owed: all processes together keep the rate', async (t) => {
    const RATE = 50;
    const processes = [start(t, RATE), start(t, RATE), start(t, RATE)];
    let given = 0;
    const [began, alive] = [performance.now(), unstalledMs()];
    while (unstalledMs() - alive < 4_000) {
      for (const { requests } of processes) if (gives(requests, 'org_rate')) given++;
      await sleep(1);
    }
    const seconds = (performance.now() - began) / 1_000;
    // At most one burst for each process, and no more than the rate besides.
    const most = RATE * seconds + 3 * 2 * RATE;
    assert.ok(given <= most, `${given} in ${seconds} s, and ${most} would be too many`);
    assert.ok(
      given >= (RATE * (unstalledMs() - alive)) / 1_000,
      `${given} in ${seconds} s: nobody is held below the rate`,
    );
  });

  it('a new process gives at most one burst', async (t) => {
    const one = start(t, 1);
    drain(one.requests, 'org_late');
    await eventually('shared', async () => (await shared('org_late')) !== undefined);
    const began = performance.now();
    const two = start(t, 1);
    let given = drain(two.requests, 'org_late');
    await sleep(600);
    given += drain(two.requests, 'org_late');
    const seconds = (performance.now() - began) / 1_000;
    assert.ok(given <= 2 + Math.ceil(seconds), `${given} from the second in ${seconds} s`);
  });

  it('refunded tokens are available to other processes', async (t) => {
    const [one, two] = [start(t, 0, 10), start(t, 0, 10)];
    one.mails?.take('org_back', 100);
    one.mails?.take('org_back', 100);
    await eventually('shared', async () => ((await shared('org_back')) ?? 0) > 150);
    one.mails?.refund('org_back', 100);
    await eventually('shared again', async () => ((await shared('org_back')) ?? 200) < 150);
    gives(two.mails, 'org_back');
    const standing = await eventually('learned', () => {
      const now = two.mails?.state('org_back');
      return now && now.remaining < 150 && now;
    });
    assert.ok(standing.remaining >= 99, JSON.stringify(standing));
  });

  it('an idle organization costs no statement', async (t) => {
    let statements = 0;
    const query = (statement: object) => {
      statements++;
      return database.pool.query(statement as { text: string });
    };
    const one = start(t, 1_000, 0, { query } as unknown as Pool);
    await sleep(500);
    assert.equal(statements, 0);
    gives(one.requests, 'org_idle');
    await eventually('shared', () => statements === 1);
    await sleep(500);
    assert.equal(statements, 1);
  });

  it('0 means no limit', (t) => {
    const { requests, mails } = start(t, 0, 0);
    assert.deepEqual([requests, mails], [null, null]);
  });

  it('many organizations share statements, and each has its own tokens', async (t) => {
    const one = start(t, 1);
    const orgs = Array.from({ length: 2_500 }, (_, i) => `org_many_${i}`);
    for (const org of orgs) assert.equal(drain(one.requests, org), 2);
    const { rows } = await eventually('shared', async () => {
      const stored = await database.pool.query(`SELECT debt FROM rate_debts WHERE org_id LIKE 'org\\_many\\_%'`);
      return stored.rowCount === orgs.length && stored;
    });
    assert.ok(
      rows.every(({ debt }: { debt: number }) => debt > 1),
      'each is shared',
    );
  });
});

describe('limits while the database is away', () => {
  it('each process limits by itself, reports one error, and shares again without counting twice', async (t) => {
    const { proxy, pool } = await proxiedPool(t, database.url);
    const one = start(t, 10, 0, pool);
    await proxy.close();
    assert.equal(drain(one.requests, 'org_away'), 20);
    await eventually('an error', () => one.errors.length > 0);
    let given = 20;
    const began = performance.now();
    for (let i = 0; i < 20; i++) {
      await sleep(100);
      if (gives(one.requests, 'org_away')) given++;
    }
    assert.equal(one.errors.length, 1);
    await proxy.open();
    const debt = await eventually('shared', () => shared('org_away'));
    const flowedBack = (10 * (performance.now() - began)) / 1_000;
    assert.ok(
      given > 30 && debt <= 21 && debt > given - flowedBack - 10,
      `${debt} of ${given}, ${flowedBack} flowed back`,
    );
  });
});

it('a process that stops writes its pending usage, and may be stopped again', async () => {
  const limits = startRateLimits(database.pool, { requests: 10, mails: 0 }, () => undefined);
  limits.requests?.take('org_stop', 1);
  await limits.stop();
  assert.ok((await shared('org_stop')) !== undefined, 'it was shared');
  await limits.stop();
});
