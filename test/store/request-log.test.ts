import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { insertApiRequests, type NewApiRequest } from '../../src/store/accounts/api-requests.ts';
import { openRequestLog } from '../../src/store/accounts/request-log.ts';
import { type Pool } from '../../src/store/postgres/pool.ts';
import { requestsNotLogged } from '../../src/telemetry/topics.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const { pool } = await useDatabase(4);
let organizations = 0;

/** A log of an organization of its own. @param broken returns true while writes fail */
function open(t: TestContext, broken: () => boolean = () => false) {
  const orgId = `org_${++organizations}`;
  const errors: unknown[] = [];
  let missing = 0;
  t.after(requestsNotLogged.listen(({ count }) => (missing += count)));
  const query = async (...args: unknown[]): Promise<unknown> => {
    if (broken()) throw new Error('the database is away');
    return Reflect.apply(pool.query.bind(pool) as (...values: unknown[]) => unknown, pool, args);
  };
  const log = openRequestLog({ query } as unknown as Pool, (error) => errors.push(error));
  return {
    log,
    errors,
    missing: () => missing,
    request: (status = 200): NewApiRequest => ({
      ...{ id: newId('req'), org_id: orgId, key_id: 'key_1', method: 'GET', path: '/v1/emails' },
      ...{ status, error_code: status < 400 ? null : 'not_found', duration_ms: 1 },
    }),
    stored: async (): Promise<Record<string, number>> => {
      const { rows } = await pool.query<{ status: number; count: number }>(
        `SELECT status, count(*)::int AS count FROM api_requests WHERE org_id = $1 GROUP BY status`,
        [orgId],
      );
      return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
    },
  };
}

test('requests are stored in the background, in several batches, and the rest when the process stops', async (t) => {
  const { log, request, stored, missing } = open(t);
  for (let i = 0; i < 1_500; i++) log.record(request());
  await eventually('the first batch was written', async () => (await stored())['200'] === 1_000);
  log.record(request(404));
  await log.stop();
  assert.deepEqual(await stored(), { 200: 1_500, 404: 1 });
  assert.equal(missing(), 0);
});

test('under overload requests are left out and counted, failures last', async (t) => {
  let isAway = true;
  const { log, request, stored, missing } = open(t, () => isAway);
  for (let i = 0; i < 9_000; i++) log.record(request());
  assert.equal(missing(), 1_000);
  for (let i = 0; i < 2_500; i++) log.record(request(404));
  assert.equal(missing(), 1_500);
  isAway = false;
  await log.stop();
  assert.deepEqual(await stored(), { 200: 8_000, 404: 2_000 });
});

test('a write that failed is repeated, and reported once', async (t) => {
  let isAway = true;
  const { log, request, stored, errors } = open(t, () => isAway);
  log.record(request());
  await eventually('the failure was reported', () => errors.length > 0);
  isAway = false;
  await eventually('the request was written', async () => (await stored())['200'] === 1);
  assert.equal(errors.length, 1);
  await log.stop();
});

test('a log whose database is away when the process stops counts what it loses', async (t) => {
  const { log, request, missing } = open(t, () => true);
  log.record(request());
  await log.stop();
  assert.equal(missing(), 1);
});

test('a request that is written again is stored once', async (t) => {
  const { log, request, stored } = open(t);
  const once = request();
  await insertApiRequests(pool, [once, request()]);
  await insertApiRequests(pool, [once, request()]);
  assert.deepEqual(await stored(), { 200: 3 });
  await log.stop();
});
