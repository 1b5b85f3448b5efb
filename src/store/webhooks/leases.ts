import type { EndpointStatus } from '../../domain/webhooks.ts';
import { type Db, execute, queryColumn, queryOneRow, queryRow } from '../postgres/pool.ts';

/** A lease lapses after this time unless it is renewed: the endpoints of a worker that died then pass to another one. */
export const LEASE_MS = 15_000;

/**
 * Leases endpoints that have due deliveries. Deliveries themselves are neither locked nor marked: only the holder of the
 * lease posts them. Finds endpoints by skipping through the index webhook_deliveries_due from one endpoint to the next, so
 * that one with many deliveries costs as much as one with a single delivery.
 * @param after reads endpoints with later ids
 * @param maxRead endpoints with pending deliveries to read, due or not
 * @param limit endpoints to lease
 * @returns the leased endpoints, and the id after which to continue; null after the last endpoint
 */
export async function leaseEndpoints(
  db: Db,
  holder: string,
  after: string,
  maxRead: number,
  limit: number,
): Promise<{ ids: string[]; next: string | null }> {
  const { ids, last } = await queryOneRow<{ ids: string[]; last: string | null }>(db, {
    name: 'lease_endpoints',
    text: `WITH RECURSIVE pending AS (
             (SELECT 1 AS n, endpoint_id, next_attempt_at FROM webhook_deliveries
              WHERE status = 'pending' AND endpoint_id > $2 ORDER BY endpoint_id, next_attempt_at LIMIT 1)
             UNION ALL
             SELECT n + 1, next.* FROM pending CROSS JOIN LATERAL (
               SELECT endpoint_id, next_attempt_at FROM webhook_deliveries
               WHERE status = 'pending' AND endpoint_id > pending.endpoint_id ORDER BY endpoint_id, next_attempt_at LIMIT 1
             ) AS next WHERE n < $3
           ), free AS MATERIALIZED (
             SELECT endpoint.id FROM pending CROSS JOIN LATERAL (
               SELECT id FROM webhook_endpoints
               WHERE id = endpoint_id AND status = 'enabled' AND (leased_until IS NULL OR leased_until <= now())
               FOR NO KEY UPDATE SKIP LOCKED
             ) AS endpoint WHERE next_attempt_at <= now() LIMIT $4
           ), leased AS (
             UPDATE webhook_endpoints AS endpoint SET leased_by = $1, leased_until = now() + $5 * interval '1 millisecond'
             FROM free WHERE endpoint.id = free.id
           )
           SELECT ARRAY(SELECT id FROM free) AS ids, (SELECT max(endpoint_id) FROM pending HAVING count(*) = $3) AS last`,
    values: [holder, after, maxRead, limit, LEASE_MS],
  });
  return { ids, next: ids.length === limit ? (ids.at(-1) ?? null) : last };
}

/**
 * Renews leases that `holder` still has. Skips an endpoint that another transaction is changing: its turn comes again before
 * the lease lapses.
 * @returns the endpoints whose leases were renewed
 */
export async function renewLeases(db: Db, holder: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  return queryColumn(db, {
    name: 'renew_leases',
    text: `UPDATE webhook_endpoints SET leased_until = now() + $3 * interval '1 millisecond'
           WHERE id IN (SELECT id FROM webhook_endpoints WHERE id = ANY ($2) AND leased_by = $1 FOR NO KEY UPDATE SKIP LOCKED)
           RETURNING id`,
    values: [holder, ids, LEASE_MS],
  });
}

/** The results of the attempts of one lease to the endpoint's latest URL. */
export interface Health {
  /** Undefined if the endpoint was not read. */
  readonly url: string | undefined;
  readonly hasSuccess: boolean;
  readonly hasFailure: boolean;
  /** True if a delivery has failed at least MIN_FAILED_ATTEMPTS times, including earlier leases. */
  readonly hasRepeatedFailure: boolean;
}

/** Ends a lease, and records since when all attempts to the endpoint's URL have failed. */
export async function releaseEndpoint(
  db: Db,
  holder: string,
  id: string,
  { url, hasSuccess, hasFailure }: Health,
): Promise<void> {
  await execute(db, {
    name: 'release_endpoint',
    text: `UPDATE webhook_endpoints SET leased_by = NULL, leased_until = NULL,
             failing_since = CASE WHEN status = 'disabled' OR url <> $5 THEN failing_since
                                  WHEN $3 THEN NULL WHEN $4 THEN coalesce(failing_since, now()) ELSE failing_since END
           WHERE id = $2 AND leased_by = $1`,
    values: [holder, id, hasSuccess, hasFailure, url ?? null],
  });
}

/** An endpoint as the worker sees it. */
export interface OpenEndpoint {
  id: string;
  org_id: string;
  url: string;
  status: EndpointStatus;
  secret: Buffer;
  /** The secrets before the last rotations that still sign, latest first. */
  previous_secrets: Buffer[];
  /** Postgres's clock at this read, in Unix milliseconds. */
  read_at_ms: number;
}

/** Reads an endpoint for delivery. */
export function openEndpoint(db: Db, id: string): Promise<OpenEndpoint | undefined> {
  return queryRow(db, {
    name: 'open_endpoint',
    text: `SELECT id, org_id, url, status, secret,
                  array_remove(ARRAY[CASE WHEN old_until > now() THEN old_secret END,
                                     CASE WHEN older_until > now() THEN older_secret END], NULL) AS previous_secrets,
                  extract(epoch FROM clock_timestamp())::float8 * 1000 AS read_at_ms
           FROM webhook_endpoints WHERE id = $1`,
    values: [id],
  });
}
