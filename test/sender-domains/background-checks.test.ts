import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { registerDomainForOperator, removeDomain } from '../../src/accounts/domains.ts';
import { startDomainChecks } from '../../src/sender-domains/background-checks.ts';
import type { SenderDomainDeps } from '../../src/sender-domains/deps.ts';
import { claimDueDomains } from '../../src/store/domains/domains.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { senderDomains } from './deps.ts';

const POLL_MS = 10;
const { pool } = await useDatabase(20);
const orgId = await organization(pool);
let count = 0;
/** The domains of which a check asked DNS, once for each check. */
let asked: string[] = [];
/** Answers a lookup after `asked` was noted. */
let answer: (name: string) => Promise<void>;
let release: () => void;
const stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  asked = [];
  answer = () => Promise.resolve();
  release = () => undefined;
  await pool.query('TRUNCATE domains CASCADE');
});
afterEach(async () => {
  release();
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

async function register(n: number): Promise<{ id: string; name: string }[]> {
  return Promise.all(
    Array.from({ length: n }, () => registerDomainForOperator(pool, orgId, `d${++count}.example.com`, false)),
  );
}

function startWorker(changes: Partial<SenderDomainDeps> = {}): () => Promise<void> {
  const dns: SenderDomainDeps['dns'] = {
    txt: async (record) => {
      const [, name] = /^_sendwright\.(d\d+\.example\.com)$/.exec(record) ?? [];
      if (name !== undefined) {
        asked.push(name);
        await answer(name);
      }
      return { kind: 'none' };
    },
    cname: () => Promise.resolve({ kind: 'none' }),
  };
  // Without SMTP no DKIM keys are generated, which takes long.
  const senders = { postmark: false, smtpHost: null };
  const stop = startDomainChecks(senderDomains(pool, { dns, senders, ...changes }), POLL_MS);
  stops.push(stop);
  return stop;
}

/** Checks the domains that are due, in one poll. */
const checkDue = (changes?: Partial<SenderDomainDeps>) => startWorker(changes)();

/** Holds lookups until it is released. */
function hold(): void {
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  answer = () => released;
}

async function read(id: string) {
  const { rows } = await pool.query<{ tries: number; checked: boolean; next_s: number }>(
    `SELECT tries, last_checked_at IS NOT NULL AS checked, extract(epoch FROM next_check_at - now())::float8 AS next_s
     FROM domains WHERE id = $1`,
    [id],
  );
  return rows[0];
}

/** Lets the leases of checks lapse. */
async function expireLeases(): Promise<void> {
  await pool.query(`UPDATE domains SET next_check_at = now() - interval '1 second'`);
}

describe('background checks', () => {
  test('check each due domain once, however many workers there are', async () => {
    const names = (await register(30)).map(({ name }) => name);
    await Promise.all([checkDue(), checkDue(), checkDue()]);
    assert.deepEqual(asked.toSorted(), names.toSorted());
  });

  test('claim different domains in concurrent transactions', async () => {
    const ids = (await register(3)).map(({ id }) => id);
    const claimed = await transaction(pool, async (client) => {
      const first = await claimDueDomains(client, 2);
      const second = await transaction(pool, async (other) => {
        await other.query(`SET LOCAL lock_timeout = '5s'`);
        return claimDueDomains(other, 2);
      });
      return [...first, ...second];
    });
    assert.deepEqual(claimed.toSorted(), ids.toSorted());
  });

  test('are repeated when the lease of a failed one expires, and the others continue', async () => {
    const [failing, other] = await register(2);
    assert.ok(failing && other);
    const warnings: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) });
    answer = async (name) => {
      if (name === failing.name) throw new Error('a bug');
    };
    await checkDue({ log });
    assert.ok((await read(other.id))?.checked);
    const leased = await read(failing.id);
    assert.ok(leased && !leased.checked && leased.next_s > 0 && leased.next_s <= 120, JSON.stringify(leased));
    assert.equal(warnings.length, 1);
    assert.match(String(warnings), new RegExp(`a bug.*"domain":"${failing.id}","msg":"domain check failed"`));
    answer = () => Promise.resolve();
    await checkDue();
    assert.equal((await read(failing.id))?.checked, false, 'not before');
    await expireLeases();
    await checkDue();
    assert.equal((await read(failing.id))?.checked, true);
  });

  test('count once when a worker is suspended for longer than its lease', async () => {
    const [domain] = await register(1);
    assert.ok(domain);
    hold();
    const stopped = checkDue();
    await eventually('the first worker asks DNS', () => asked.length === 1);
    await expireLeases();
    answer = () => Promise.resolve();
    await checkDue();
    const once = await read(domain.id);
    assert.deepEqual([once?.tries, asked.length], [1, 2]);
    release();
    await stopped;
    const twice = await read(domain.id);
    assert.equal(twice?.tries, 1);
    assert.ok(twice.next_s <= 60, 'its next check is unchanged');
  });

  test('end without an error if the domain is deleted meanwhile', async () => {
    const [domain] = await register(1);
    assert.ok(domain);
    const warnings: string[] = [];
    answer = () => removeDomain({ pool, wakeRelay: () => undefined }, orgId, domain.id);
    await checkDue({ log: pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) }) });
    assert.deepEqual([asked, warnings], [[domain.name], []]);
  });

  test('are at most 20 at a time in one worker, which has finished them when it stops', async () => {
    const domains = await register(25);
    hold();
    const stop = startWorker();
    await eventually('20 ask DNS', () => asked.length === 20);
    const claimed = `SELECT FROM domains WHERE next_check_at > now()`;
    assert.equal((await pool.query(claimed)).rowCount, 20);
    let isStopped = false;
    const stopping = stop().then(() => {
      isStopped = true;
    });
    // A poll under way has ended by then.
    await pool.query('SELECT');
    assert.ok(!isStopped);
    release();
    await stopping;
    const states = await Promise.all(domains.map(({ id }) => read(id)));
    assert.equal(states.filter((state) => state?.checked).length, 20);
  });

  test('continue after an outage of Postgres', async () => {
    await register(1);
    const messages: unknown[] = [];
    let failures = 2;
    const failing = new Proxy(pool, {
      get(target, key) {
        if (key === 'query' && failures-- > 0) return () => Promise.reject(new Error('away'));
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => messages.push((JSON.parse(line) as { msg: string }).msg) },
    );
    startWorker({ pool: failing, log });
    await eventually('it is checked', () => asked.length === 1);
    assert.deepEqual(messages, ['due domains could not be claimed']);
  });
});
