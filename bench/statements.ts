import { makePool } from '../src/store/postgres/pool.ts';
import { printTable } from './table.ts';

const MAX_STATEMENTS = 20;
const MAX_TEXT_LENGTH = 70;

/** Prints the application's statements with the largest total time in Postgres since it started. */
export async function printStatements(adminUrl: string): Promise<void> {
  const pool = makePool(adminUrl, 'bench', 1, () => undefined);
  try {
    await pool.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    const { rows } = await pool.query<Record<string, string | number>>(
      `SELECT datname AS database, round(total_exec_time)::float8 AS "all ms", calls::float8 AS calls,
              round(mean_exec_time::numeric, 2)::float8 AS "mean ms", round(max_exec_time)::float8 AS "max ms",
              rows::float8 AS rows, left(regexp_replace(query, '\\s+', ' ', 'g'), $2) AS statement
       FROM pg_stat_statements JOIN pg_database AS database ON database.oid = dbid
       ORDER BY total_exec_time DESC LIMIT $1`,
      [MAX_STATEMENTS, MAX_TEXT_LENGTH],
    );
    printTable('Statements by their time in Postgres', rows);
  } finally {
    await pool.end();
  }
}
