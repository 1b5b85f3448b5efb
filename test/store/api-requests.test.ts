import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { QueryConfig } from 'pg';
import { listApiRequests, type RequestFilters } from '../../src/store/accounts/api-requests.ts';
import type { Cursor } from '../../src/store/postgres/page.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, type PlanNode, readBy } from '../support/plans.ts';

const ROWS = 25_000;
const LOOKED_AT = 10_000;
const PAGE = 51;
const ORG = 'org_large';

const { pool } = await useDatabase(2);
// One request a second; one of 997 failed, and one of 5,000 on our side.
await pool.query(
  `INSERT INTO api_requests (id, org_id, key_id, method, path, status, error_code, duration_ms)
   SELECT 'req_' || substr(email_id_at(now() - n * interval '1 second'), 4) || lpad(n::text, 16, '0'), org, 'key_' || n % 7,
          'GET', '/v1/emails', CASE WHEN n % 5000 = 0 THEN 500 WHEN n % 997 = 0 THEN 422 ELSE 200 END, NULL, 1
   FROM generate_series(1, $1::int) AS n, unnest(ARRAY[$2, 'org_other']) AS org`,
  [ROWS, ORG],
);

const NONE: RequestFilters = { status: null, path: null, key: null, request_id: null };

async function pagesOf(filters: Partial<RequestFilters>, limit: number, db: Db = pool): Promise<number[][]> {
  const pages: number[][] = [];
  for (let after: Cursor | null = null; ;) {
    const page: Awaited<ReturnType<typeof listApiRequests>> = await listApiRequests(
      db,
      ORG,
      { ...NONE, ...filters },
      after,
      limit,
    );
    pages.push(page.rows.map(({ id }) => Number(id.slice(-16))));
    if (!page.next) return pages;
    after = page.next;
  }
}

describe('the list of API requests', () => {
  it('leads through the whole log, even if pages of a rare filter are empty', async () => {
    const none = await pagesOf({ path: '/v1/none' }, 10);
    assert.deepEqual(none, [[], [], []], 'three pages of 10,000 requests');
    const all = (await pagesOf({}, 5_000)).flat();
    assert.deepEqual([all.length, all[0], all.at(-1)], [ROWS, 1, ROWS]);
    const key = (await pagesOf({ key: 'key_3' }, 100)).flat();
    assert.equal(key.length, Math.ceil((ROWS - 2) / 7));
  });

  it('leaves out a request without a route at the end of a page, if the filter names one', async () => {
    const setPath = (path: string | null) =>
      pool.query(`UPDATE api_requests SET path = $2 WHERE org_id = $1 AND id LIKE '%0000010000'`, [ORG, path]);
    await setPath(null);
    const listed = await pagesOf({ key: 'key_4', path: '/v1/emails' }, 5_000);
    await setPath('/v1/emails');
    assert.ok(!listed.flat().includes(LOOKED_AT));
  });

  it('finds failures by their index, however many requests succeeded in between', async () => {
    const status = { min: 500, max: 599 };
    assert.deepEqual(await pagesOf({ status }, 10), [[5_000, 10_000, 15_000, 20_000, 25_000]]);
  });

  it('reads a bounded number of rows, with every filter and from every position', async () => {
    await pool.query('VACUUM ANALYZE api_requests');
    const { rows } = await pool.query<{ id: string }>(
      `SELECT id FROM api_requests WHERE org_id = $1 ORDER BY id OFFSET ${ROWS / 2} LIMIT 1`,
      [ORG],
    );
    const middle = { id: rows[0]?.id ?? '', created_at: '' };
    const cases: readonly [string, Partial<RequestFilters>, number][] = [
      ['no filter', {}, PAGE],
      ['a rare failure', { status: { min: 422, max: 422 } }, PAGE],
      ['one request', { request_id: middle.id }, 1],
      ['a key', { key: 'key_3' }, 7 * PAGE],
      ['a path that none has', { path: '/v1/none' }, LOOKED_AT],
    ];
    for (const [what, filters, most] of cases) {
      const works = [null, middle].map(
        (from) => [what, (db: Db) => listApiRequests(db, ORG, { ...NONE, ...filters }, from, PAGE - 1)] as const,
      );
      // A step with a limit reads one row of each partition to merge them.
      const check = (steps: readonly PlanNode[], message: string) =>
        assert.ok(Math.max(...steps.map(readBy)) <= most + 5, message);
      await explainEach(pool, works, check);
    }
  });

  it('repeats no request while requests are logged', async () => {
    const insert = `INSERT INTO api_requests (id, org_id, key_id, method, path, status, error_code, duration_ms)
      SELECT 'req_' || substr(email_id_at(now()), 4) || lpad(n::text, 16, '0'), $1, 'key_new', 'GET', NULL, 200, NULL, 1
      FROM generate_series(1, 100) AS n ON CONFLICT DO NOTHING`;
    const query = async (statement: QueryConfig) => {
      const result = await pool.query(statement);
      await pool.query(insert, [ORG]);
      return result;
    };
    const pages = await pagesOf({ key: 'key_3' }, 5_000, { query } as unknown as Db);
    assert.deepEqual(
      pages.map((page) => page.length > 0),
      [true, true, true],
    );
    assert.equal(new Set(pages.flat()).size, pages.flat().length);
  });
});
