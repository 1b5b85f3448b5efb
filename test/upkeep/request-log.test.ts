import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idTime } from '../../src/lib/ids.ts';
import { insertApiRequests } from '../../src/store/accounts/api-requests.ts';
import { listPartitions } from '../../src/store/upkeep/partitions.ts';
import { rotateRequestLog } from '../../src/upkeep/partitions.ts';
import { useDatabase } from '../support/database.ts';

const DAY = 86_400_000;
const { pool } = await useDatabase();
const suffixes = async () => (await listPartitions(pool, 'api_requests')).map(({ suffix }) => suffix);
const [migratedOn = ''] = await suffixes();
/** The day on which the template database was migrated: by now it may be yesterday. */
const today = Date.parse(migratedOn.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3'));
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10).replaceAll('-', '');

/** Days from today on which requests are stored, and where. */
async function stored(): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ name: string; count: number }>(
    `SELECT tableoid::regclass::text AS name, count(*)::int AS count FROM api_requests GROUP BY 1 ORDER BY 1`,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name.replace('api_requests_', ''), count]));
}

async function logAt(...times: readonly number[]): Promise<void> {
  const rest = { org_id: 'org_a', key_id: null, method: 'GET', path: null, status: 200, error_code: null };
  const requests = times.map((at, n) => {
    const id = `req_${idTime(at)}${String(n).padStart(16, '0')}`;
    return { ...rest, id, duration_ms: 0 };
  });
  await insertApiRequests(pool, requests);
}

test('the log has a partition a day, two ahead, and drops days after the retention', async () => {
  assert.deepEqual(await suffixes(), [dayOf(today)], 'the migration adds that of today');
  assert.ok(today > Date.now() - 2 * DAY && today <= Date.now(), migratedOn);
  await logAt(today, today + DAY - 1, today + DAY, today + 3 * DAY);
  assert.deepEqual(await stored(), { [dayOf(today)]: 2, default: 2 });

  assert.equal(await rotateRequestLog(pool, 7, today + 2 * DAY), 0);
  const days = [0, 1, 2, 3].map((day) => dayOf(today + day * DAY));
  assert.deepEqual(await suffixes(), days);
  assert.deepEqual(await stored(), { [dayOf(today)]: 2, [dayOf(today + DAY)]: 1, [dayOf(today + 3 * DAY)]: 1 });

  assert.equal(await rotateRequestLog(pool, 7, today + 8 * DAY - 1), 0, 'kept for seven whole days');
  assert.equal(await rotateRequestLog(pool, 7, today + 8 * DAY), 1);
  assert.deepEqual(await stored(), { [dayOf(today + DAY)]: 1, [dayOf(today + 3 * DAY)]: 1 });
});

test('after a time without upkeep all missing days are added, and a retention of 0 keeps nothing before today', async () => {
  const later = today + 40 * DAY;
  assert.ok((await rotateRequestLog(pool, 7, later)) > 0);
  await logAt(later);
  assert.equal((await stored())[dayOf(later)], 1);
  await rotateRequestLog(pool, 0, later + DAY);
  assert.deepEqual(await stored(), {});
  assert.ok((await suffixes()).includes(dayOf(later + DAY)));
});
