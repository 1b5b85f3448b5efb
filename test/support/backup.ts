import { type Pool, transaction } from '../../src/store/postgres/pool.ts';

/** Copies all rows of a database into another schema. @returns puts them back, in place of the rows that there are then */
export async function backUp(pool: Pool): Promise<() => Promise<void>> {
  const { rows: tables } = await pool.query<{ name: string; columns: string }>(
    `SELECT quote_ident(relname) AS name, string_agg(quote_ident(attname), ', ') AS columns
     FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND attnum > 0 AND NOT attisdropped AND attgenerated = '' GROUP BY 1`,
  );
  await pool.query('CREATE SCHEMA backup');
  for (const { name } of tables) await pool.query(`CREATE TABLE backup.${name} AS TABLE ${name}`);
  return () =>
    transaction(pool, async (client) => {
      // Foreign keys and triggers are off, as they are in a restore.
      await client.query(`SET LOCAL session_replication_role = replica`);
      await client.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}`);
      for (const { name, columns } of tables) {
        await client.query(
          `INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE SELECT ${columns} FROM backup.${name}`,
        );
      }
    });
}
