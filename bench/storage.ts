import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { batchBody, postBatch, postSome } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';
import { untilQuiet } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
/** Batches one after the other: only then does autovacuum free the room of former versions of rows, as in production. */
const BATCHES = size('BENCH_RUNS', 12);
/** The default, a minute, is longer than a run: production, where tables grow more slowly, vacuums in time. */
const POSTGRES = { autovacuum_naptime: '1s' };
/** A single email has its own workflow, so fewer emails measure the same in less time. */
const SINGLES = Math.ceil(SIZE / 10);
/** Tables with fewer bytes per email are omitted. */
const MIN_BYTES = 5;

/** Measures the bytes that an email adds to the database, per table, and to the write-ahead log, until it was delivered. */
export async function storage(): Promise<void> {
  const rows = await withStack({ env: { EMAIL_PROVIDERS: 'postmark' }, postgres: POSTGRES }, async (stack, pool) => [
    ...(await measure(pool, 'batches', BATCHES * SIZE, () => postBatches(stack, pool))),
    ...(await measure(pool, 'singles', SINGLES, () => postSome(stack, SINGLES))),
  ]);
  report('storage', 'bytes per email', rows, { emails: SIZE, batches: BATCHES, singles: SINGLES });
}

async function postBatches(stack: DevFile, pool: Pool): Promise<void> {
  const body = batchBody(stack, SIZE);
  for (let n = 0; n < BATCHES; n++) {
    await postBatch(stack, body);
    await untilQuiet(pool);
  }
}

async function measure(pool: Pool, what: string, emails: number, post: () => Promise<unknown>): Promise<Row[]> {
  const before = await readSizes(pool);
  await post();
  await untilQuiet(pool);
  const after = await readSizes(pool);
  const tables = [...after.tables].map(([table, { rows, indexes }]) => {
    const { rows: rowsBefore = 0, indexes: indexesBefore = 0 } = before.tables.get(table) ?? {};
    return { what, table, rows: (rows - rowsBefore) / emails, indexes: (indexes - indexesBefore) / emails };
  });
  const sum = (name: 'rows' | 'indexes') => tables.reduce((total, each) => total + each[name], 0);
  const listed = tables.filter(({ rows, indexes }) => rows + indexes >= MIN_BYTES);
  return [
    {
      what,
      table: 'all',
      rows: sum('rows'),
      indexes: sum('indexes'),
      'log, with Temporal': (after.log - before.log) / emails,
    },
    ...listed.sort((a, b) => b.rows + b.indexes - a.rows - a.indexes),
  ];
}

/** The sizes of the database in bytes: of the rows and indexes of each table, and of the log. */
interface Sizes {
  readonly tables: ReadonlyMap<string, { readonly rows: number; readonly indexes: number }>;
  /** Bytes of the write-ahead log since the server was created. */
  readonly log: number;
}

async function readSizes(pool: Pool): Promise<Sizes> {
  const { rows } = await pool.query<{ table: string; rows: number; indexes: number }>(
    `SELECT relname AS table, pg_table_size(oid)::float8 AS rows, pg_indexes_size(oid)::float8 AS indexes
     FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  );
  const log = await pool.query<{ bytes: number }>(`SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS bytes`);
  return { tables: new Map(rows.map(({ table, ...sizes }) => [table, sizes])), log: log.rows[0]?.bytes ?? 0 };
}
