import pg from 'pg';

/** Anything that runs a statement: a pool, or one client inside its caller's transaction. */
export type Db = Pick<pg.ClientBase, 'query'>;
export type Pool = pg.Pool;

/** Times are read as the API writes them: UTC with milliseconds. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).toISOString());

/**
 * A prepared statement keeps the plan that was made while its tables were empty: without these options the first batch of
 * 10,000 took 10 to 24 s instead of 3.4 to 3.8 s (decision 81). Every statement has an index that serves it. For the same
 * reason, rows with given ids are looked up by `id = ANY`, also beside a join, which the planner cannot turn into a scan (103).
 * Without generic plans, statements on partitioned tables would be planned each time (132).
 */
const PLANNER = '-c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan';

/**
 * Server-side TCP limits. When a client host vanishes without closing its connections (power loss, partition), Postgres
 * ends them after about 25 s. With the kernel's defaults their row locks would stay for more than two hours.
 */
export const DEAD_PEER_DETECTION =
  '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000';

/**
 * Postgres ends a transaction that has been idle for this long: its process hangs, although its kernel still answers
 * keepalives. The relay's transaction is idle for at most 10 s at a time, the deadline of one round of Temporal requests.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 45_000;
/** A statement that waits longer for a lock fails with 55P03 and is retried by its caller. */
const LOCK_TIMEOUT_MS = 20_000;
const STATEMENT_TIMEOUT_MS = 60_000;
/** The client waits this much longer than the server, because the server's answer may be lost. */
const CLIENT_TIMEOUT_MARGIN_MS = 5_000;

export interface Timeouts {
  readonly statementMs?: number;
  readonly idleInTransactionMs?: number;
}

/**
 * Opens a pool of connections. Connecting times out after 5 s, a statement after 60 s, also when the network drops the
 * server's answer; lost connections are replaced. Parameters of `url` override these limits, except that of connecting.
 * @param name the connections' application_name in pg_stat_activity, without the prefix
 * @param onIdleError called when an idle connection breaks
 */
export function makePool(
  url: string,
  name: string,
  max: number,
  onIdleError: (error: Error) => void,
  { statementMs = STATEMENT_TIMEOUT_MS, idleInTransactionMs = IDLE_IN_TRANSACTION_TIMEOUT_MS }: Timeouts = {},
): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: `sendwright ${name}`,
    max,
    types,
    options: `${PLANNER} ${DEAD_PEER_DETECTION}`,
    // Sends statements without waiting for earlier results; they run in order.
    pipeline: true,
    connectionTimeoutMillis: 5_000,
    statement_timeout: statementMs,
    query_timeout: statementMs + CLIENT_TIMEOUT_MARGIN_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
  });
  pool.on('error', onIdleError);
  // A connection may break before its user listens for errors; its next statement then fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

type Statement = string | pg.QueryConfig;

/** Runs a statement. A statement with a name is prepared once per connection. */
export async function queryRows<Row extends pg.QueryResultRow>(
  db: Db,
  statement: Statement,
  values?: unknown[],
): Promise<Row[]> {
  return (await db.query<Row>(statement, values)).rows;
}

/** Runs a statement that returns at most one row. */
export async function queryRow<Row extends pg.QueryResultRow>(
  db: Db,
  statement: Statement,
  values?: unknown[],
): Promise<Row | undefined> {
  return (await queryRows<Row>(db, statement, values))[0];
}

/** Runs a statement that returns one column. @returns the value of each row */
export async function queryColumn<Value>(db: Db, statement: Statement, values?: unknown[]): Promise<Value[]> {
  const rows = await queryRows<Record<string, Value>>(db, statement, values);
  return rows.map((row) => Object.values(row)[0] as Value);
}

/** Runs a statement that returns one column of at most one row. @returns undefined if there is no row */
export async function queryValue<Value>(db: Db, statement: Statement, values?: unknown[]): Promise<Value | undefined> {
  return (await queryColumn<Value>(db, statement, values))[0];
}

/** Runs a statement that returns a row in any case. */
export async function queryOneRow<Row extends pg.QueryResultRow>(
  db: Db,
  statement: Statement,
  values?: unknown[],
): Promise<Row> {
  const row = await queryRow<Row>(db, statement, values);
  if (!row) throw new Error(`${nameOf(statement)} returned no row`);
  return row;
}

/** Runs a statement that returns one column of a row in any case. */
export async function queryOneValue<Value>(db: Db, statement: Statement, values?: unknown[]): Promise<Value> {
  return Object.values(await queryOneRow<Record<string, Value>>(db, statement, values))[0] as Value;
}

function nameOf(statement: Statement): string {
  return (typeof statement === 'string' ? undefined : statement.name) ?? 'a statement';
}

/** Runs a statement. @returns the number of rows that it has changed or, for a SELECT, returned */
export async function execute(db: Db, statement: Statement, values?: unknown[]): Promise<number> {
  return (await db.query(statement, values)).rowCount ?? 0;
}

/** Runs a statement that changes or finds at most one row. @returns true if it did */
export async function executeOne(db: Db, statement: Statement, values?: unknown[]): Promise<boolean> {
  return (await execute(db, statement, values)) === 1;
}

/** Callbacks to run after the commit of a client's transaction. */
const callbacks = new WeakMap<object, (() => void)[]>();

/** Runs `callback` after the commit of the transaction of `db`: immediately without one, never after a rollback. */
export function afterCommit(db: Db, callback: () => void): void {
  const pending = callbacks.get(db);
  if (pending) pending.push(callback);
  else callback();
}

/**
 * Sends the COMMIT behind statements that are on their way, which saves a round trip. They must be the last ones, sent before
 * this is called. If one of them fails, Postgres rolls all back.
 */
export type CommitWith = <T>(statements: Promise<T>) => Promise<T>;

/** Runs `work` in one transaction: committed when it returns, rolled back when it throws. */
export async function transaction<T>(pool: Pool, work: (client: Db, commitWith: CommitWith) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // Without a listener, the error of a connection that breaks between two statements would end the process.
  const onError = (error: Error) => {
    broken = error;
  };
  client.on('error', onError);
  const pending: (() => void)[] = [];
  // The caller may learn first that Postgres refused a statement which was sent behind the one that failed.
  let firstError: unknown;
  const send = client.query.bind(client) as (...statement: unknown[]) => Promise<pg.QueryResult>;
  const query = (...statement: unknown[]): Promise<pg.QueryResult> => {
    const result = send(...statement);
    result.catch((error: unknown) => (firstError ??= error));
    return result;
  };
  const db: Db = { query };
  callbacks.set(db, pending);
  let committing: Promise<unknown> | undefined;
  try {
    // Sent with the first statement. If it fails, so does that.
    db.query('BEGIN').catch(() => undefined);
    const result = await work(db, (statements) => {
      committing = db.query('COMMIT');
      committing.catch(() => undefined);
      return statements;
    });
    await (committing ?? db.query('COMMIT'));
    for (const callback of pending) callback();
    return result;
  } catch (thrown) {
    const error = isAborted(thrown) ? firstError : thrown;
    // Closing a broken connection also rolls back, without waiting for the network.
    if (isUnreachable(error)) onError(error as Error);
    else await db.query('ROLLBACK').catch(onError);
    throw error;
  } finally {
    callbacks.delete(db);
    client.off('error', onError);
    client.release(broken);
  }
}

/** Runs the reads of `work` on one connection, as of one instant. */
export function snapshot<T>(pool: Pool, work: (client: Db) => Promise<T>): Promise<T> {
  return transaction(pool, (client) => {
    // Sent with the first statement. If it fails, so does that.
    client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ').catch(() => undefined);
    return work(client);
  });
}

/** Runs `work` in the transaction of `db`, which its caller commits, or in one of its own if `db` is a pool. */
export function inTransaction<T>(db: Db, work: (client: Db, commitWith: CommitWith) => Promise<T>): Promise<T> {
  return db instanceof pg.Pool ? transaction(db, work) : work(db, (statements) => statements);
}

/**
 * SQLSTATE classes and codes of transient failures: connection lost, password replaced before the process was restarted,
 * deadlock or serialization failure, server starting or stopping, read-only or in recovery during a fail-over, out of resources, failures
 * of its machine, statement, lock and idle timeouts.
 */
const UNREACHABLE_STATES = /^(?:08|25006|28|40|53|55000|58|57P0[1-4]|57014|25P03|55P03)/;
const UNREACHABLE_CODES = new Set([
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'EAI_FAIL',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'EMFILE',
  'ENETDOWN',
  'ENETUNREACH',
  'ENFILE',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);
/** The driver's own errors, which have no code. */
const UNREACHABLE_MESSAGES =
  /^(?:Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error)/;

/** Codes of Node and OpenSSL for a failed handshake or a certificate that is not accepted. */
const TLS_CODES =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_(?:CA|PURPOSE)$)/;
/** The driver's own errors, which have no code. */
const TLS_MESSAGES =
  /^(?:The server does not support SSL connections|There was an error establishing an SSL connection)/;

/** Returns true if the server was reached but no TLS connection could be established. */
export function isTlsFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? TLS_CODES.test(code) : TLS_MESSAGES.test(error.message);
}

/** Returns true for errors of this folder which mean that the database is temporarily unreachable or unusable. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  if (!(error instanceof Error)) return false;
  if (isTlsFailure(error)) return true;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return UNREACHABLE_CODES.has(code) || UNREACHABLE_STATES.test(code);
  return UNREACHABLE_MESSAGES.test(error.message);
}

/** Returns true for a statement that Postgres ended because it took too long (SQLSTATE 57014). */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

/** Returns true for a violation of a unique constraint (SQLSTATE 23505). */
export function isDuplicate(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505';
}

/** Returns true for a statement that was refused because an earlier one of its transaction had failed (SQLSTATE 25P02). */
function isAborted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25P02';
}
