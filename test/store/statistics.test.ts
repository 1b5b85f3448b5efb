import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BounceReason } from '../../src/domain/email/email.ts';
import { TRANSITIONS } from '../../src/domain/email/states.ts';
import { newId } from '../../src/lib/ids.ts';
import { percentile } from '../../src/lib/times.ts';
import { type RequestedChange, project, projectChanges } from '../../src/projection/emails.ts';
import { insertDomain } from '../../src/store/domains/domains.ts';
import { type Db, makePool, type Pool, transaction } from '../../src/store/postgres/pool.ts';
import { readSeries } from '../../src/store/statistics/series.ts';
import { aggregateStatistics, deleteOldStatistics } from '../../src/store/statistics/totals.ts';
import { makeRandom, type Random } from '../faults/random.ts';
import { useDatabase } from '../support/database.ts';
import { accept, acceptOne, inMs, newEmail, organization } from './mail.ts';
import { countEmails, readFigures } from './statistics-truth.ts';

const { pool, url } = await useDatabase(10);

const DAY = 86_400_000;
const RECENT = { from: new Date(Date.now() - DAY), to: new Date(Date.now() + DAY) };

/** The only series of an organization's emails by hour. */
async function only(orgId: string, dimension = 'all', key: string | null = null) {
  const filter = { channel: 'email', ...RECENT, step: 'hour', dimension, key } as const;
  const [series, ...more] = await readSeries(pool, orgId, filter, 10);
  assert.equal(more.length, 0);
  return series;
}

let domains = 0;
const anOrganization = async () => {
  const domain = `o${++domains}.example`;
  return { orgId: await organization(pool, domain), domain };
};

async function aggregateAll(): Promise<void> {
  while ((await aggregateStatistics(pool, 5_000)) > 0);
}

/** States that an email is counted in. */
const countedStates = (counts: object | undefined) =>
  Object.entries(counts ?? {}).flatMap(([state, count]) => (count === 1 ? [state] : []));

describe('statistics of an email', () => {
  for (const [changes, states] of [
    [[], []],
    [['canceled'], ['canceled']],
    [['claimed', 'suppressed'], ['suppressed']],
    [['claimed', 'rejected'], ['rejected']],
    [['claimed', 'sent'], ['sent']],
    [
      ['claimed', 'sent', 'delivered', 'opened', 'clicked'],
      ['sent', 'delivered', 'opened', 'clicked'],
    ],
    [
      ['claimed', 'clicked'],
      ['sent', 'delivered', 'opened', 'clicked'],
    ],
    [
      ['claimed', 'opened', 'delivered', 'sent'],
      ['sent', 'delivered', 'opened'],
    ],
    [
      ['claimed', 'delivery_delayed'],
      ['sent', 'delayed'],
    ],
    [
      ['claimed', 'bounced'],
      ['sent', 'bounced'],
    ],
    // Reports about several recipients may come in any order.
    [
      ['claimed', 'bounced', 'delivered'],
      ['sent', 'delivered', 'bounced'],
    ],
    [
      ['claimed', 'delivered', 'bounced'],
      ['sent', 'delivered', 'bounced'],
    ],
    [
      ['claimed', 'complained', 'delivery_delayed'],
      ['sent', 'delayed', 'complained'],
    ],
    [
      ['claimed', 'failed', 'sent', 'unsubscribed'],
      ['sent', 'failed'],
    ],
  ] as const) {
    test(`after ${changes.join(', ') || 'its acceptance'} count ${states.join(', ') || 'nothing more'}`, async () => {
      const { orgId, domain } = await anOrganization();
      const id = await acceptOne(pool, orgId, { from_domain: domain, scheduled_at: inMs(60_000) });
      for (const change of changes) {
        const bounce = change === 'bounced' && { bounce_reason: 'mailbox_full' as const };
        const input = { id, ...(['bounced', 'failed'].includes(change) && { error: 'x' }), ...bounce };
        for (let i = 0; i < 2; i++) await project(pool, change, [input]);
      }
      const expected = ['accepted', ...states];
      assert.deepEqual(countedStates((await only(orgId))?.points[0]), expected, 'before aggregation');
      await aggregateAll();
      assert.deepEqual(countedStates((await only(orgId))?.points[0]), expected, 'after it');
    });
  }

  test('count all that it has reached for the reason of its first bounce, and what it reaches later', async () => {
    const { orgId, domain } = await anOrganization();
    const id = await acceptOne(pool, orgId, { from_domain: domain });
    const bounce = (name: string, bounce_reason: BounceReason) =>
      project(pool, 'bounced', [{ id, recipient: `${name}@example.net`, error: 'no', bounce_reason }]);
    await project(pool, 'delivered', [{ id }]);
    await bounce('a', 'mailbox_full');
    await bounce('b', 'mailbox_not_found');
    await project(pool, 'complained', [{ id, recipient: 'c@example.net' }]);
    const series = await only(orgId, 'bounce_reason');
    assert.equal(series?.key, 'mailbox_full');
    assert.deepEqual(countedStates(series.points[0]), ['accepted', 'sent', 'delivered', 'bounced', 'complained']);
  });

  test('are one row for all alike of a transaction, and none for a change that reaches nothing new', async () => {
    const { orgId, domain } = await anOrganization();
    const emails = Array.from({ length: 20 }, () => newEmail({ from_domain: domain }));
    await accept(pool, orgId, emails);
    const changes = emails.map(({ id }) => ({ id }));
    for (let i = 0; i < 2; i++) await project(pool, 'opened', changes);
    await project(pool, 'delivered', changes);
    const { rows } = await pool.query('SELECT states, messages FROM stat_additions WHERE org_id = $1 ORDER BY id', [
      orgId,
    ]);
    assert.deepEqual(rows, [
      { states: 1, messages: 20 },
      { states: 70, messages: 20 },
    ]);
  });

  test('include the time from when it was due until it was sent and delivered', async () => {
    const { orgId, domain } = await anOrganization();
    const ids = [
      await acceptOne(pool, orgId, { from_domain: domain }),
      await acceptOne(pool, orgId, { from_domain: domain, scheduled_at: inMs(5_000) }),
    ];
    await pool.query(
      `UPDATE emails SET status = 'queued', created_at = clock_timestamp() - interval '1 hour',
         scheduled_at = scheduled_at - interval '15 seconds' WHERE id = ANY ($1)`,
      [ids],
    );
    for (const change of ['sent', 'delivered', 'delivered'] as const) {
      await project(
        pool,
        change,
        ids.map((id) => ({ id })),
      );
    }
    // A report that overtakes another one leaves the other's time unknown.
    const overtaking = await acceptOne(pool, orgId, { from_domain: domain });
    for (const change of ['opened', 'sent', 'delivered'] as const) await project(pool, change, [{ id: overtaking }]);
    for (const when of ['before', 'after']) {
      const times = (await only(orgId))?.times;
      // 3,600,000 ms <= 2^(44/2); 10,000 ms <= 2^(27/2).
      const expected = new Map([
        [27, 1],
        [44, 1],
      ]);
      assert.deepEqual(times, { sent: expected, delivered: expected }, `${when} aggregation`);
      await aggregateAll();
    }
    assert.ok((percentile((await only(orgId))?.times.sent ?? new Map(), 0.5) ?? 0) > 8_000);
  });

  test('are those of its organization, channel, period and key', async () => {
    const [{ orgId, domain }, other] = [await anOrganization(), await anOrganization()];
    await acceptOne(pool, orgId, { from_domain: domain, key_id: 'key_1', tags: [{ name: 'kind', value: 'a' }] });
    await acceptOne(pool, orgId, { from_domain: domain, tags: [{ name: 'kind', value: 'b' }] });
    await acceptOne(pool, other.orgId, { from_domain: other.domain });
    await pool.query(`UPDATE stat_additions SET hour = '2026-03-01T17:00Z' WHERE org_id = $1`, [orgId]);
    const filter = { channel: 'email', step: 'hour', dimension: 'all', key: null } as const;
    const read = async (from: string, to: string, more: object = {}) => {
      const period = { from: new Date(`2026-03-01T${from}:00Z`), to: new Date(`2026-03-01T${to}:00Z`) };
      const all = await readSeries(pool, orgId, { ...filter, ...period, ...more }, 10);
      return all.map(({ key, points }) =>
        [key, ...points.map(({ at, accepted }) => `${at.slice(11, 16)} ${accepted}`)].join(' '),
      );
    };
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await read('17:59', '18:00'), ['all 17:00 2'], 'the hour that contains the begin');
      assert.deepEqual(await read('17:30', '17:30'), ['all 17:00 2'], 'also when it is the end');
      assert.deepEqual(await read('16:00', '17:00'), [], 'the end is exclusive');
      assert.deepEqual(await read('18:00', '19:00'), []);
      assert.deepEqual(await read('17:00', '18:00', { step: 'day' }), ['all 00:00 2']);
      assert.deepEqual(await read('17:00', '18:00', { channel: 'sms' }), []);
      assert.deepEqual(await read('17:00', '18:00', { dimension: 'key' }), ['key_1 17:00 1']);
      assert.deepEqual(await read('17:00', '18:00', { dimension: 'tag:kind' }), ['a 17:00 1', 'b 17:00 1']);
      assert.deepEqual(await read('17:00', '18:00', { dimension: 'tag:kind', key: 'b' }), ['b 17:00 1']);
      await aggregateAll();
    }
  });

  test('are kept for 100 days by hour and 400 by day', async () => {
    const { orgId, domain } = await anOrganization();
    for (let i = 0; i < 3; i++) await acceptOne(pool, orgId, { from_domain: domain });
    const additions = await pool.query<{ id: string }>('SELECT id FROM stat_additions WHERE org_id = $1 ORDER BY id', [
      orgId,
    ]);
    for (const [index, days] of [99, 102, 402].entries()) {
      await pool.query(
        `UPDATE stat_additions SET hour = date_trunc('hour', now()) - $2 * interval '1 day' WHERE id = $1`,
        [additions.rows[index]?.id, days],
      );
    }
    await aggregateAll();
    while ((await deleteOldStatistics(pool, 2)) > 0);
    const { rows } = await pool.query(
      `SELECT step, count(*)::int AS rows FROM stat_totals WHERE org_id = $1 AND dimension = 'all' GROUP BY step ORDER BY step`,
      [orgId],
    );
    assert.deepEqual(rows, [
      { step: 'day', rows: 2 },
      { step: 'hour', rows: 1 },
    ]);
  });
});

/** Changes of a run. `STATISTICS_CHANGES=1000000 npm test -- test/store/statistics.test.ts` takes minutes. */
const CHANGES = Number(process.env['STATISTICS_CHANGES'] ?? 3_000);
const WORKERS = 6;
const TAG_NAMES = ['kind', 'plan'];
const REASONS = ['mailbox_full', 'mailbox_not_found', 'spam_block'] as const;
const KINDS = Object.keys(TRANSITIONS).filter(
  (change) => change !== 'rescheduled' && !change.endsWith('_for_one'),
) as RequestedChange['change'][];

describe('statistics under failures', () => {
  test('equal the counts of rows and timelines after random changes on connections that break', async (t) => {
    const seed = Number(process.env['STATISTICS_SEED'] ?? Date.now() % 1_000_000);
    t.diagnostic(`seed ${seed}, ${CHANGES} changes`);
    const breaking = makePool(url, 'breaking', WORKERS + 1, () => undefined);
    t.after(() => breaking.end());
    const { orgId, domain } = await anOrganization();
    await insertDomain(pool, newId('dm'), orgId, `b.${domain}`, true);
    const run: Run = { pool: breaking, orgId, domains: [domain, `b.${domain}`], ids: [], changes: 0, broken: 0 };
    const over = new AbortController();
    const background = [
      killConnections(makeRandom(seed), over.signal),
      aggregate(run, makeRandom(seed + 1), over.signal),
    ];
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(run, makeRandom(seed + 2 + worker))));
    over.abort();
    await Promise.all(background);

    const truth = await countEmails(pool, orgId);
    assert.deepEqual(await readFigures(pool, orgId, TAG_NAMES), truth, 'before the rest is aggregated');
    await aggregateAll();
    assert.deepEqual(await readFigures(pool, orgId, TAG_NAMES), truth, 'after');
    assert.ok(run.broken > 0, 'some transactions have failed');
    assert.ok(Object.keys(truth).length > 20);
    t.diagnostic(`${run.ids.length} emails, ${run.broken} failed transactions, ${Object.keys(truth).length} figures`);
  });
});

interface Run {
  readonly pool: Pool;
  readonly orgId: string;
  readonly domains: readonly string[];
  /** Emails that may exist. */
  readonly ids: string[];
  changes: number;
  broken: number;
}

const pick = <T>(random: Random, values: readonly T[]): T => values[random.integer(0, values.length)] as T;

/** Accepts and changes emails until the run has made its changes. */
async function work(run: Run, random: Random): Promise<void> {
  while (run.changes < CHANGES) {
    const isNew = run.ids.length === 0 || random.chance(0.15);
    const size = random.integer(1, isNew ? 20 : 40);
    if (!isNew) run.changes += size;
    const step = (client: Db) =>
      isNew ? acceptSome(client, run, random, size) : changeSome(client, run, random, size);
    await transaction(run.pool, async (client) => {
      await step(client);
      if (random.chance(0.1)) throw new Error('rolled back');
    }).catch(() => run.broken++);
  }
}

async function acceptSome(client: Db, { orgId, domains: from, ids }: Run, random: Random, size: number): Promise<void> {
  const batch_id = random.chance(0.5) ? newId('bt') : null;
  const emails = Array.from({ length: size }, () => {
    const domain = pick(random, from);
    const tags = TAG_NAMES.filter(() => random.chance(0.5)).map((name) => ({
      name,
      value: `v${random.integer(0, 4)}`,
    }));
    const key_id = random.chance(0.8) ? `key_${random.integer(0, 3)}` : undefined;
    const scheduled_at = random.chance(0.3) ? inMs(60_000) : null;
    return newEmail({ from: `a@${domain}`, from_domain: domain, batch_id, tags, key_id, scheduled_at });
  });
  await accept(client, orgId, emails);
  // As if they had been accepted earlier.
  const hours = random.integer(0, 30);
  await client.query(`UPDATE emails SET created_at = created_at - $2 * interval '1 hour' WHERE id = ANY ($1)`, [
    emails.map(({ id }) => id),
    hours,
  ]);
  await client.query(
    `UPDATE stat_additions SET hour = hour - $1 * interval '1 hour' WHERE org_id = $2 AND xmin = pg_current_xact_id()::xid`,
    [hours, orgId],
  );
  ids.push(...emails.map(({ id }) => id));
}

async function changeSome(client: Db, { ids }: Run, random: Random, size: number): Promise<void> {
  const changes = Array.from({ length: size }, () => {
    const id = pick(random, ids);
    const change = pick(random, KINDS);
    const recipient = `${id}@example.net`;
    const reason = REASONS[id.charCodeAt(id.length - 1) % REASONS.length] as BounceReason;
    const bounce = change === 'bounced' && { recipient, bounce_reason: reason, error: 'no' };
    return { change, input: { id, ...bounce, ...(change === 'failed' && { error: 'no' }) } };
  });
  await projectChanges(client, changes);
}

async function aggregate({ pool: breaking }: Run, random: Random, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await aggregateStatistics(breaking, random.integer(1, 50)).catch(() => undefined);
    await sleep(random.integer(0, 5));
  }
}

/** Terminates random connections of the run, at any point of their transactions. */
async function killConnections(random: Random, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM (
         SELECT pid FROM pg_stat_activity WHERE application_name = 'sendwright breaking' AND datname = current_database()
         ORDER BY random() LIMIT 1
       ) AS one`,
    );
    await sleep(random.integer(5, 100));
  }
}
