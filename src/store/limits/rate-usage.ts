import { type Db, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** The units that a token bucket limits: requests, emails, or registrations and checks of domains. */
export type BucketName = 'requests' | 'mails' | 'domains';

/** The usage of one process since its last report. */
export interface ProcessUsage {
  readonly org_id: string;
  readonly bucket: BucketName;
  /** Tokens; negative when more were returned than taken. */
  readonly spent: number;
}

/** The usage of all processes that has not been refilled. */
export interface SharedUsage {
  org_id: string;
  bucket: BucketName;
  /** In tokens. */
  usage: number;
}

/**
 * Adds this process's usage to that of all processes, by the database's clock, and returns the state of each bucket.
 * @param usages at most one for each organization and bucket
 * @param rates tokens refilled per second; undefined for a bucket without a limit
 */
export function exchangeUsage(
  db: Db,
  usages: readonly ProcessUsage[],
  rates: Readonly<Partial<Record<BucketName, number>>>,
): Promise<SharedUsage[]> {
  return queryRows(db, {
    name: 'exchange_usage',
    // A fixed order prevents deadlocks between processes.
    text: `INSERT INTO rate_debts AS shared (org_id, bucket, debt, at)
           SELECT org_id, bucket, spent, clock_timestamp()
           FROM unnest($1::text[], $2::text[], $3::float8[]) AS mine(org_id, bucket, spent)
           ORDER BY org_id, bucket
           ON CONFLICT (org_id, bucket) DO UPDATE SET
             debt = greatest(0, greatest(0, shared.debt - greatest(0, extract(epoch FROM excluded.at - shared.at)::float8)
                      * CASE shared.bucket WHEN 'requests' THEN $4::float8 WHEN 'mails' THEN $5::float8 ELSE $6::float8 END) + excluded.debt),
             at = greatest(shared.at, excluded.at)
           RETURNING org_id, bucket, greatest(0, debt) AS usage`,
    values: [
      ...columns(usages, 'org_id', 'bucket', 'spent'),
      rates.requests ?? 0,
      rates.mails ?? 0,
      rates.domains ?? 0,
    ],
  });
}
