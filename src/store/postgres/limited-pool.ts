import type pg from 'pg';
import type { Pool } from './pool.ts';

type Callback = (error: Error | undefined, client: pg.PoolClient | undefined, done: pg.PoolClient['release']) => void;

/**
 * Returns a view of a pool in which each connection takes a slot until it is released.
 * @param takeSlot waits for a slot and returns its release; what it throws is what `connect` and `query` throw
 */
export function limitPool(pool: Pool, takeSlot: () => Promise<() => void>): Pool {
  const open = async (): Promise<pg.PoolClient> => {
    const release = await takeSlot();
    const client = await pool.connect().catch((error: unknown) => {
      release();
      throw error;
    });
    // The pool sets `release` anew for each user of a connection.
    const giveBack = client.release.bind(client);
    client.release = (error) => {
      giveBack(error);
      release();
    };
    return client;
  };
  // `query` of the pool calls `connect` with a callback.
  const connect = (callback?: Callback): Promise<pg.PoolClient> | undefined => {
    if (!callback) return open();
    open().then(
      (client) => callback(undefined, client, client.release.bind(client)),
      (error: unknown) => callback(error as Error, undefined, () => undefined),
    );
    return undefined;
  };
  return Object.create(pool, { connect: { value: connect } }) as Pool;
}
