import { digest } from '../../lib/digest.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, type Pool, queryOneRow } from '../postgres/pool.ts';

/** The idempotency key of a request and the fingerprint of its content. */
export interface IdempotencyKey {
  readonly key: string;
  /** SHA-256 of method, path and body. */
  readonly fingerprint: Buffer;
}

/** The fingerprint and the response of the first request with a key. */
export interface StoredResponse {
  readonly fingerprint: Buffer;
  readonly body: unknown;
}

/** Unlocks a key. Never throws: the key of a lost connection is unlocked already. */
export type Unlock = () => Promise<void>;

/** The result of a request for the lock on a key. */
export type KeyLock = { readonly kind: 'locked'; readonly unlock: Unlock } | NotLocked;
type NotLocked =
  /** Another request has locked the key and has no response yet. */
  | { readonly kind: 'in_progress' }
  /** The first request with the key has a response. */
  | { readonly kind: 'completed'; readonly response: StoredResponse };

/** Locks each key for one request at a time, across all processes. */
export interface KeyLocks {
  readonly lock: (orgId: string, key: string) => Promise<KeyLock>;
}

/**
 * Locks keys by advisory locks of one pool connection, which is held while any key is locked. Locking a key therefore writes
 * nothing. Keys of a killed process are unlocked immediately, those of a vanished machine after 25 s. If the connection breaks,
 * the table still accepts only one response per key.
 */
export function makeKeyLocks(pool: Pool): KeyLocks {
  // A connection can take its own lock again, so within this process the set decides.
  const locked = new Set<string>();
  let connection: SharedConnection | undefined;

  return {
    async lock(orgId, key) {
      const name = `${orgId} ${key}`;
      if (locked.has(name)) return { kind: 'in_progress' };
      locked.add(name);
      const [high, low] = lockOf(name);
      const { run, leave } = (connection = connection?.open ? connection : shareConnection(pool)).join();
      try {
        const result = await run((client) => lockKey(client, orgId, key, high, low));
        if (result !== 'locked') {
          locked.delete(name);
          leave();
          return result;
        }
      } catch (error) {
        locked.delete(name);
        leave(error);
        throw error;
      }
      const unlock = async () => {
        // Later requests use the same connection, after the unlock.
        locked.delete(name);
        await run((client) => unlockKey(client, high, low)).then(() => leave(), leave);
      };
      return { kind: 'locked', unlock };
    },
  };
}

interface SharedConnection {
  /** True while further users may join. */
  readonly open: boolean;
  readonly join: () => {
    /** Runs a statement after the previous ones of all users. */
    run: <T>(statement: (db: Db) => Promise<T>) => Promise<T>;
    /** @param error the reason why the connection is closed instead of returned to the pool */
    leave: (error?: unknown) => void;
  };
}

/** Takes a connection from the pool. Its last user returns it, or closes it if any statement has failed. */
function shareConnection(pool: Pool): SharedConnection {
  const client = pool.connect();
  let users = 0;
  let open = true;
  let broken: unknown;
  const fail = (error: unknown): void => {
    broken ??= error;
    open = false;
  };
  client.then((connected) => connected.on('error', fail), fail);
  let last: Promise<unknown> = client;
  const run = <T>(statement: (db: Db) => Promise<T>): Promise<T> => {
    const result = last.catch(() => undefined).then(async () => statement(await client));
    last = result;
    return result;
  };
  const leave = (error?: unknown): void => {
    if (error) fail(error);
    if (--users > 0) return;
    open = false;
    client.then(
      (connected) => {
        connected.off('error', fail);
        connected.release(broken !== undefined);
      },
      () => undefined,
    );
  };
  return {
    get open() {
      return open;
    },
    join() {
      users++;
      return { run, leave };
    },
  };
}

/** Returns the two numbers by which Postgres locks a name. Their locks are separate from those of a single number. */
function lockOf(name: string): [number, number] {
  const bytes = digest(name);
  return [bytes.readInt32BE(0), bytes.readInt32BE(4)];
}

/** Finds the response of a key. Without one, locks the key for the lifetime of the connection, unless another one has locked it. */
async function lockKey(db: Db, orgId: string, key: string, high: number, low: number): Promise<'locked' | NotLocked> {
  const row = await queryOneRow<StoredResponse & { found: boolean; locked: boolean | null }>(db, {
    name: 'lock_key',
    text: `WITH expired AS (
             DELETE FROM idempotency_keys WHERE org_id = $1 AND key = $2 AND created_at <= now() - interval '24 hours'
           )
           SELECT known.key IS NOT NULL AS found, known.fingerprint, known.answer AS body,
                  CASE WHEN known.key IS NULL THEN pg_try_advisory_lock($3, $4) END AS locked
           FROM (SELECT) AS request LEFT JOIN idempotency_keys AS known
                ON known.org_id = $1 AND known.key = $2 AND known.created_at > now() - interval '24 hours'`,
    values: [orgId, key, high, low],
  });
  const { found, locked, ...response } = row;
  if (found) return { kind: 'completed', response };
  return locked ? 'locked' : { kind: 'in_progress' };
}

async function unlockKey(db: Db, high: number, low: number): Promise<void> {
  await execute(db, { name: 'unlock_key', text: `SELECT pg_advisory_unlock($1, $2)`, values: [high, low] });
}

/**
 * Stores responses under the idempotency keys of their requests, in the transaction of the requests' effects.
 * @throws SQLSTATE 23505 if a key has been used meanwhile
 */
export async function rememberResponses(
  db: Db,
  orgId: string,
  responses: readonly (IdempotencyKey & { readonly response: unknown })[],
): Promise<void> {
  if (responses.length === 0) return;
  await execute(db, {
    name: 'remember_responses',
    text: `INSERT INTO idempotency_keys (org_id, key, fingerprint, answer)
           SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::json[])`,
    values: [
      orgId,
      ...columns(responses, 'key', 'fingerprint'),
      responses.map(({ response }) => JSON.stringify(response)),
    ],
  });
}
