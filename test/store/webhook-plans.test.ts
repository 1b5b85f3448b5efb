import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { type DueDelivery, findDue, recordAttempts, type NewAttempt } from '../../src/store/webhooks/attempts.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { readDeliveryHealth, searchDeliveries, HEALTH_SAMPLE } from '../../src/store/webhooks/delivery-search.ts';
import { leaseEndpoints } from '../../src/store/webhooks/leases.ts';
import { useDatabase } from '../support/database.ts';
import { explainingKept, flat, type PlanNode, readBy } from '../support/plans.ts';
import { accept, newEmail, organization } from './mail.ts';

const { pool } = await useDatabase();

/** Executions after which Postgres has cached a generic plan, made for tables of a few rows. */
const UNTIL_KEPT = 8;
const FEW = 5;

const ATTEMPT: Omit<NewAttempt, 'id' | 'eventId' | 'dueAt'> = {
  ...{ startedAgoMs: 1, statusCode: 200, durationMs: 1, response: null, error: null },
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

test('webhook workers read a few of thousands of deliveries, by plans made for tables with a few rows', async () => {
  const orgId = await organization(pool);
  const endpoints = [1, 2].map(() => newId('wh')).toSorted();
  for (const id of endpoints) {
    const fields = { id, url: 'https://example.com/', description: null, events: [] };
    await insertEndpoint(pool, orgId, fields, Buffer.from('x'));
  }
  const [endpoint = ''] = endpoints;
  const store = (count: number) =>
    accept(
      pool,
      orgId,
      Array.from({ length: count }, () => newEmail()),
    );
  await store(FEW);
  await pool.query('ANALYZE');
  const client = await pool.connect();
  try {
    const run = async (db: Db, work: (typeof STATEMENTS)[string]) => {
      const due = await findDue(pool, endpoint, [], FEW);
      await client.query('BEGIN');
      await work(db, endpoint, due);
      await client.query('ROLLBACK');
    };
    for (const work of Object.values(STATEMENTS)) for (let i = 0; i < UNTIL_KEPT; i++) await run(client, work);
    const email = (await searchDeliveries(pool, endpoint, ANY, null, 1)).rows[0]?.message_id ?? '';
    for (const [, read] of Object.values(PAGES)) {
      for (let i = 0; i < UNTIL_KEPT; i++) await read(client, endpoint, email);
    }
    await store(3_000);
    for (const [name, work] of Object.entries(STATEMENTS)) {
      const plans: PlanNode[] = [];
      await run(explainingKept(client, plans), work);
      assert.equal(plans.length, name === 'recordAttempts of failures' ? 2 : 1, `statements of ${name}`);
      for (const node of plans.flatMap(flat))
        assert.ok(readBy(node) <= 10 * FEW, `${name} has read ${readBy(node)} rows: ${JSON.stringify(plans, null, 1)}`);
    }
    for (const [name, [most, read]] of Object.entries(PAGES)) {
      const plans: PlanNode[] = [];
      await read(explainingKept(client, plans), endpoint, email);
      for (const node of plans.flatMap(flat))
        assert.ok(readBy(node) <= most, `${name} has read ${readBy(node)} rows: ${JSON.stringify(plans, null, 1)}`);
    }
  } finally {
    client.release(true);
  }
});
