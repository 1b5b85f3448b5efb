import { type Db, execute, queryRow, queryRows } from '../postgres/pool.ts';

/** How workers keep up with the workflows that the relay starts. */
export interface RelayLag {
  /** The age of the oldest one that no worker has claimed an email of, in milliseconds. */
  readonly lagMs: number;
  /** True while single messages share workflows for that reason. */
  readonly isBehind: boolean;
}

/**
 * Takes the lease of the relay that dispatches the outbox, or renews it for its holder.
 * @returns false if another relay holds it
 */
export async function takeRelayLease(db: Db, holder: string, ms: number, lag: RelayLag): Promise<boolean> {
  const taken = await queryRows(db, {
    name: 'take_relay_lease',
    text: `INSERT INTO relay_lease (holder, expires_at, lag_ms, is_behind)
           VALUES ($1, now() + $2 * interval '1 millisecond', $3, $4)
           ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
             lag_ms = excluded.lag_ms, is_behind = excluded.is_behind
           WHERE relay_lease.holder = $1 OR relay_lease.expires_at <= now()
           RETURNING holder`,
    values: [holder, ms, Math.round(lag.lagMs), lag.isBehind],
  });
  return taken.length > 0;
}

/** Returns what the relay recorded last; without a relay, that nothing lags. */
export async function readRelayLag(db: Db): Promise<RelayLag> {
  const lag = await queryRow<RelayLag>(db, {
    name: 'read_relay_lag',
    text: `SELECT lag_ms AS "lagMs", is_behind AS "isBehind" FROM relay_lease`,
  });
  return lag ?? { lagMs: 0, isBehind: false };
}

/** Releases the lease, if `holder` still holds it. */
export async function releaseRelayLease(db: Db, holder: string): Promise<void> {
  await execute(db, 'DELETE FROM relay_lease WHERE holder = $1', [holder]);
}
