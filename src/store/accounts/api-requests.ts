import { createdAt } from '../../lib/ids.ts';
import { columns } from '../postgres/columns.ts';
import { type Cursor, cutReadPage, type Page, type ReadRow } from '../postgres/page.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** A request with the fields that its organization can see. */
export interface ApiRequest {
  /** The request id of its response. */
  id: string;
  method: string;
  /** The path of its route, such as `/v1/emails/:id`; null if no route matched. */
  path: string | null;
  status: number;
  /** The code of an error response; null for a success. */
  error_code: string | null;
  /** The API key; null for a failed request of the dashboard. */
  key_id: string | null;
  duration_ms: number;
  created_at: string;
}

export type NewApiRequest = Omit<ApiRequest, 'created_at'> & { org_id: string };

/** The conditions of a list; a request must meet all of them. Null is no condition. */
export interface RequestFilters {
  readonly status: { readonly min: number; readonly max: number } | null;
  readonly path: string | null;
  readonly key: string | null;
  readonly request_id: string | null;
}

/** Limits the requests that one page reads, so that its cost does not depend on the length of the log. */
const MAX_READ_REQUESTS = 10_000;
/** Sorts after all ids of requests. */
const LATEST = 'req_~';

/** Stores requests; those that are stored already are left out. The commit does not wait for the disk. */
export async function insertApiRequests(db: Db, requests: readonly NewApiRequest[]): Promise<void> {
  await execute(db, {
    name: 'insert_api_requests',
    text: `WITH no_flush AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
           INSERT INTO api_requests (id, org_id, key_id, method, path, status, error_code, duration_ms)
           SELECT input.* FROM no_flush,
             unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::integer[]) AS input
           ON CONFLICT DO NOTHING`,
    values: columns(requests, 'id', 'org_id', 'key_id', 'method', 'path', 'status', 'error_code', 'duration_ms'),
  });
}

/**
 * Lists requests of an organization that meet the filters, latest first. It reads at most 10,000 requests, so a page may not be
 * full, or even be empty, although `next` is not null.
 */
export async function listApiRequests(
  db: Db,
  orgId: string,
  filters: RequestFilters,
  after: Cursor | null,
  limit: number,
): Promise<Page<ApiRequest>> {
  const { status, path, key, request_id: requestId } = filters;
  const walk = requestId !== null ? 'one' : status !== null && status.min >= 400 ? 'failed' : 'all';
  const begin = requestId ?? after?.id ?? LATEST;
  const read = await queryRows<Omit<ApiRequest, 'created_at'> & ReadRow>(db, {
    name: `list_${walk}_requests`,
    text: `SELECT id, method, path, status, error_code, key_id, duration_ms, is_match, is_last
           FROM (
             SELECT *, ($3::smallint IS NULL OR status BETWEEN $3 AND $4) AND ($5::text IS NULL OR path = $5)
                       AND ($6::text IS NULL OR key_id = $6) AS is_match,
                    row_number() OVER (ORDER BY id DESC) = ${MAX_READ_REQUESTS} AS is_last
             FROM (${WALKS[walk]}) AS request LIMIT ${MAX_READ_REQUESTS}
           ) AS looked
           WHERE is_match OR is_last ORDER BY id DESC LIMIT $7`,
    values: [orgId, begin, status?.min ?? null, status?.max ?? null, path, key, limit + 1],
  });
  return cutReadPage(read.map(withTime), limit);
}

const BEFORE = 'SELECT * FROM api_requests WHERE org_id = $1 AND id < $2';
/** SQL of the requests of organization $1 that a page reads, latest first, by index. */
const WALKS = {
  all: `${BEFORE} ORDER BY id DESC`,
  failed: `${BEFORE} AND status >= 400 ORDER BY id DESC`,
  one: 'SELECT * FROM api_requests WHERE org_id = $1 AND id = $2',
} as const;

/** Adds the time of a request, which its id contains. */
function withTime<T extends { id: string }>(request: T): T & { created_at: string } {
  return { ...request, created_at: new Date(createdAt(request.id)).toISOString() };
}
