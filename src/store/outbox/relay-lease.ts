import { type Db, execute, queryRows } from '../postgres/pool.ts';

/**
 * Takes the lease of the relay that dispatches the outbox, or renews it for its holder.
 * @returns false if another relay holds it
 */
export async function takeRelayLease(db: Db, holder: string, ms: number): Promise<boolean> {
  const taken = await queryRows(db, {
    name: 'take_relay_lease',
    text: `INSERT INTO relay_lease (holder, expires_at) VALUES ($1, now() + $2 * interval '1 millisecond')
           ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
           WHERE relay_lease.holder = $1 OR relay_lease.expires_at <= now()
           RETURNING holder`,
    values: [holder, ms],
  });
  return taken.length > 0;
}

/** Releases the lease, if `holder` still holds it. */
export async function releaseRelayLease(db: Db, holder: string): Promise<void> {
  await execute(db, 'DELETE FROM relay_lease WHERE holder = $1', [holder]);
}
