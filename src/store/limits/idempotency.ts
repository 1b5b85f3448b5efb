import { digest } from '../../lib/digest.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, type Pool, queryRow } from '../postgres/pool.ts';

/** The idempotency key of a request and the fingerprint of its content. */
export interface IdempotencyKey {
  readonly key: string;
  /** SHA-256 of method, path and body. */
  readonly fingerprint: Buffer;
}

/** The fingerprint and the response of the first request with a key. */
export interface StoredResponse {
  readonly fingerprint: Buffer;
  readonly answer: unknown;
}

/** Releases a key. Never throws: the key of a lost connection is free already. */
export type Release = () => Promise<void>;

/** Locks each key for one request at a time, across all processes. */
export interface KeyHolder {
  /** @returns the stored response, or the release of the key if the caller has it now; undefined if another request has it */
  readonly take: (orgId: string, key: string) => Promise<StoredResponse | Release | undefined>;
}

/**
 * Locks keys by advisory locks of one pool connection, which is held while any key is locked. Locking a key therefore writes
 * nothing. Keys of a killed process are released immediately, those of a vanished machine after 25 s. If the connection breaks,
 * the table still accepts only one response per key.
 */
export function makeKeyHolder(pool: Pool): KeyHolder {
  // A connection can take its own lock again, so within this process the set decides.
  const held = new Set<string>();
  let session: Session | undefined;

  return {
    async take(orgId, key) {
      const name = `${orgId} ${key}`;
      if (held.has(name)) return undefined;
      held.add(name);
      const [high, low] = lockOf(name);
      const { ask, leave } = (session = session?.open ? session : makeSession(pool)).enter();
      try {
        const { known, taken } = await ask((client) => takeKey(client, orgId, key, high, low));
        if (taken) {
          return async () => {
            // Later requests use the same connection, after the unlock.
            held.delete(name);
            await ask((client) => unlock(client, high, low)).then(() => leave(), leave);
          };
        }
        held.delete(name);
        leave();
        return known;
      } catch (error) {
        held.delete(name);
        leave(error);
        throw error;
      }
    },
  };
}

interface Session {
  /** True while further requests may use it. */
  readonly open: boolean;
  readonly enter: () => {
    /** Runs a statement after the previous ones. */
    ask: <T>(statement: (db: Db) => Promise<T>) => Promise<T>;
    leave: (error?: unknown) => void;
  };
}

/** A connection that its last user returns to the pool, or closes if any statement has failed. */
function makeSession(pool: Pool): Session {
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
  const ask = <T>(statement: (db: Db) => Promise<T>): Promise<T> => {
    const asked = last.catch(() => undefined).then(async () => statement(await client));
    last = asked;
    return asked;
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
    enter() {
      users++;
      return { ask, leave };
    },
  };
}

/** Returns the two numbers by which Postgres locks a name. Their locks are separate from those of a single number. */
function lockOf(name: string): [number, number] {
  const bytes = digest(name);
  return [bytes.readInt32BE(0), bytes.readInt32BE(4)];
}

/** Finds the response of a key. Without one, locks the key for the lifetime of the connection, unless another one has locked it. */
async function takeKey(
  db: Db,
  orgId: string,
  key: string,
  high: number,
  low: number,
): Promise<{ known: StoredResponse | undefined; taken: boolean }> {
  const row = await queryRow<StoredResponse & { found: boolean; taken: boolean | null }>(db, {
    name: 'take_key',
    text: `WITH expired AS (
             DELETE FROM idempotency_keys WHERE org_id = $1 AND key = $2 AND created_at <= now() - interval '24 hours'
           )
           SELECT known.key IS NOT NULL AS found, known.fingerprint, known.answer,
                  CASE WHEN known.key IS NULL THEN pg_try_advisory_lock($3, $4) END AS taken
           FROM (SELECT) AS request LEFT JOIN idempotency_keys AS known
                ON known.org_id = $1 AND known.key = $2 AND known.created_at > now() - interval '24 hours'`,
    values: [orgId, key, high, low],
  });
  return { known: row?.found ? { fingerprint: row.fingerprint, answer: row.answer } : undefined, taken: !!row?.taken };
}

async function unlock(db: Db, high: number, low: number): Promise<void> {
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
