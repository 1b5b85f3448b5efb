import type { Db } from '../postgres/pool.ts';

/** What a token bucket counts: requests, the emails in them, or registrations and checks of domains. */
export type BucketName = 'requests' | 'mails' | 'domains';

/** What one process has let through since it last told. */
export interface ProcessUsage {
  readonly org_id: string;
  readonly bucket: BucketName;
  /** Tokens; less than none when more was given back than taken. */
  readonly spent: number;
}

/** What all processes together have taken out and has not flowed back. */
export interface Usage {
  org_id: string;
  bucket: BucketName;
  debt: number;
}

/**
 * Adds what this process has let through to what all have, by the database's clock, and tells where each bucket stands now.
 * @param usages at most one for each organization and bucket
 * @param rates tokens that flow back each second; none where there is no such limit
 */
export async function exchangeUsage(
  db: Db,
  usages: readonly ProcessUsage[],
  rates: Readonly<Partial<Record<BucketName, number>>>,
): Promise<Usage[]> {
  const { rows } = await db.query<Usage>({
    name: 'exchange_debts',
    // In one order everywhere, so that two processes never wait for each other's rows.
    text: `INSERT INTO rate_debts AS shared (org_id, bucket, debt, at)
           SELECT org_id, bucket, spent, clock_timestamp()
           FROM unnest($1::text[], $2::text[], $3::float8[]) AS mine(org_id, bucket, spent)
           ORDER BY org_id, bucket
           ON CONFLICT (org_id, bucket) DO UPDATE SET
             debt = greatest(0, greatest(0, shared.debt - greatest(0, extract(epoch FROM excluded.at - shared.at)::float8)
                      * CASE shared.bucket WHEN 'requests' THEN $4::float8 WHEN 'mails' THEN $5::float8 ELSE $6::float8 END) + excluded.debt),
             at = greatest(shared.at, excluded.at)
           RETURNING org_id, bucket, greatest(0, debt) AS debt`,
    values: [
      usages.map(({ org_id }) => org_id),
      usages.map(({ bucket }) => bucket),
      usages.map(({ spent }) => spent),
      rates.requests ?? 0,
      rates.mails ?? 0,
      rates.domains ?? 0,
    ],
  });
  return rows;
}
