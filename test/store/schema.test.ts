import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { useDatabase } from '../support/database.ts';
import { describeSchema } from '../support/schema.ts';

const FILE = new URL('../../src/store/schema.txt', import.meta.url);

const { pool } = await useDatabase(1);

test('src/store/schema.txt is the schema of the migrations; npm run schema:dump writes it', async () => {
  const schema = await describeSchema(pool);
  if (process.env['SCHEMA'] === 'write') await writeFile(FILE, schema);
  assert.equal(await readFile(FILE, 'utf8'), schema);
});

test('every index has a comment, those of partitions by their parent', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT index.relname AS name FROM pg_index
     JOIN pg_class AS index ON index.oid = indexrelid
     JOIN pg_class AS relation ON relation.oid = indrelid
     WHERE relation.relnamespace = 'public'::regnamespace AND NOT index.relispartition
       AND obj_description(indexrelid, 'pg_class') IS NULL`,
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    [],
  );
});
