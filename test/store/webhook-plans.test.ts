import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { newId } from '../../src/lib/ids.ts';
import type { Db, Pool } from '../../src/store/postgres/pool.ts';
import { type DueDelivery, findDue, recordAttempts, type NewAttempt } from '../../src/store/webhooks/attempts.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { readDeliveryHealth, searchDeliveries, HEALTH_SAMPLE } from '../../src/store/webhooks/delivery-search.ts';
import { leaseEndpoints } from '../../src/store/webhooks/leases.ts';
import { testDatabase } from '../support/database.ts';
import { explainingKept, flat, type PlanNode, readBy } from '../support/plans.ts';
import { acceptMany, organization } from './mail.ts';

/** Executions after which Postgres has cached a generic plan. */
const UNTIL_KEPT = 8;
const FEW = 5;
const STORED = 3_000;

const ATTEMPT: Omit<NewAttempt, 'id' | 'eventId' | 'dueAt'> = {
  ...{ at: new Date().toISOString(), statusCode: 200, durationMs: 1, response: null, error: null },
  ...{ status: 'succeeded', retryInMs: null },
};
const STATEMENTS: Readonly<
  Record<string, (db: Db, endpoint: string, due: readonly DueDelivery[]) => Promise<unknown>>
> = {
  leaseEndpoints: (db) => leaseEndpoints(db, 'worker', '', 100, 10).catch(ignoreNoRow),
  findDue: (db, endpoint) => findDue(db, endpoint, [], FEW),
  recordAttempts: (db, _, due) =>
    recordAttempts(
      db,
      due.map(({ id, event_id: eventId, due_at: dueAt }) => ({ ...ATTEMPT, id, eventId, dueAt })),
    ),
  'recordAttempts of failures': (db, _, due) =>
    recordAttempts(
      db,
      due.map(({ id, event_id: eventId, due_at: dueAt, data, email }) => ({
        ...{ ...ATTEMPT, id, eventId, dueAt },
        ...{ status: 'pending', retryInMs: 1_000, posted: { payload: '{}', data, to: email?.to ?? null } },
      })),
    ),
};

const ANY = { status: null, type: null, response: null, since: null, until: null, messageId: null };
/** Statements of the dashboard, with the rows that they may read. */
const PAGES: Readonly<
  Record<string, readonly [most: number, (db: Db, endpoint: string, email: string) => Promise<unknown>]>
> = {
  searchDeliveries: [10 * FEW, (db, endpoint) => searchDeliveries(db, endpoint, ANY, null, FEW)],
  'searchDeliveries of a status': [
    10 * FEW,
    (db, endpoint) => searchDeliveries(db, endpoint, { ...ANY, status: 'pending' }, null, FEW),
  ],
  'searchDeliveries of an email': [
    10 * FEW,
    (db, endpoint, email) => searchDeliveries(db, endpoint, { ...ANY, messageId: email }, null, FEW),
  ],
  readDeliveryHealth: [HEALTH_SAMPLE + 10 * FEW, (db, endpoint) => readDeliveryHealth(db, [endpoint])],
};

/** `explainingKept` returns no rows. */
function ignoreNoRow(error: unknown): void {
  if (!/returned no row/.test(String(error))) throw error;
}

/** A delivery that does not exist. */
const UNKNOWN: DueDelivery = {
  ...{ id: 'whd_1', event_id: 'evt_1', tries: 0, due_at: new Date().toISOString(), type: 'email.queued' },
  ...{ created_at: new Date().toISOString(), message_id: null, data: {}, payload: null, email: null },
};

/** The state of the tables when the plans are made: a table without statistics is planned as one with ten pages. */
const STATES = [
  { tables: 'empty tables without statistics', emails: 0, isAnalyzed: false },
  { tables: 'empty tables', emails: 0, isAnalyzed: true },
  { tables: 'tables with a few rows', emails: FEW, isAnalyzed: true },
];

for (const { tables, emails, isAnalyzed } of STATES) {
  test(`webhook workers read a few of thousands of deliveries, by plans made for ${tables}`, async () => {
    const { pool, drop } = await testDatabase();
    try {
      const orgId = await organization(pool);
      const endpoints = [1, 2].map(() => newId('wh')).toSorted();
      for (const id of endpoints) {
        const fields = { id, url: 'https://example.com/', description: null, events: [] };
        await insertEndpoint(pool, orgId, fields, Buffer.from('x'));
      }
      const [endpoint = ''] = endpoints;
      if (emails > 0) await acceptMany(pool, orgId, emails);
      if (isAnalyzed) await pool.query('ANALYZE');
      const client = await pool.connect();
      try {
        await readFew(pool, client, orgId, endpoint);
      } finally {
        client.release(true);
      }
    } finally {
      await drop();
    }
  });
}

/** Makes the plans of a connection, stores thousands of deliveries, and counts the rows that each step reads. */
async function readFew(pool: Pool, client: pg.PoolClient, orgId: string, endpoint: string): Promise<void> {
  const run = async (db: Db, work: (typeof STATEMENTS)[string]) => {
    const due = await findDue(pool, endpoint, [], FEW);
    await client.query('BEGIN');
    await work(db, endpoint, due.length > 0 ? due : [UNKNOWN]);
    await client.query('ROLLBACK');
  };
  for (const work of Object.values(STATEMENTS)) for (let i = 0; i < UNTIL_KEPT; i++) await run(client, work);
  for (const [, read] of Object.values(PAGES)) {
    for (let i = 0; i < UNTIL_KEPT; i++) await read(client, endpoint, 'em_1');
  }
  const [email = ''] = await acceptMany(pool, orgId, STORED);
  const readsAtMost = (name: string, plans: readonly PlanNode[], most: number) => {
    for (const node of plans.flatMap(flat))
      assert.ok(readBy(node) <= most, `${name} has read ${readBy(node)} rows: ${JSON.stringify(plans, null, 1)}`);
  };
  for (const [name, [most, read]] of Object.entries(PAGES)) {
    const plans: PlanNode[] = [];
    await read(explainingKept(client, plans), endpoint, email);
    readsAtMost(name, plans, most);
  }
  // The last ones of the endpoint are due: a step that searches all rows in the order of their ids would find the first ones soon.
  await pool.query(
    `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL
     WHERE endpoint_id = $1 AND id <> ALL (ARRAY(SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY id DESC LIMIT $2))`,
    [endpoint, FEW],
  );
  for (const [name, work] of Object.entries(STATEMENTS)) {
    const plans: PlanNode[] = [];
    await run(explainingKept(client, plans), work);
    assert.equal(plans.length, name === 'recordAttempts of failures' ? 2 : 1, `statements of ${name}`);
    readsAtMost(name, plans, 10 * FEW);
  }
}
