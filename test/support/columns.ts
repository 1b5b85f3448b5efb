import type { Pool } from '../../src/store/postgres/pool.ts';

/** Columns whose values contain a text, in any table, in any case, also in bytes. @param except rows of this organization are left out */
export async function columnsWith(pool: Pool, text: string, except?: string): Promise<string[]> {
  const { rows } = await pool.query<{ table: string; column: string; type: string }>(
    `SELECT quote_ident(relname) AS table, quote_ident(attname) AS column, typname AS type
     FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
     WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND attnum > 0 AND NOT attisdropped`,
  );
  const found: string[] = [];
  for (const { table, column, type } of rows) {
    const value = type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`;
    const { rows: hits } = await pool.query(
      `SELECT FROM ${table} AS t WHERE ${value} ILIKE $1 AND ($2::text IS NULL OR strpos(t::text, $2) = 0) LIMIT 1`,
      [`%${text}%`, except],
    );
    if (hits.length > 0) found.push(`${table}.${column}`);
  }
  return found.sort();
}
