import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { judgeMigrations } from './additive.ts';

const FOLDER = new URL('../../src/store/migrations/', import.meta.url);
/** The last migration before the first release: no database in service lacks it. */
const BASELINE = '0011-hours.sql';

/** The schema of the version before it. */
const BEFORE = `CREATE TABLE attempts (outcome text CHECK (outcome IN ('a')));
  CREATE TABLE t (id text PRIMARY KEY, s text NOT NULL CHECK (s IN ('a', 'b')), n integer);
  CREATE TABLE o (action text);
  ALTER TABLE o ADD CONSTRAINT o_action CHECK (action IN ('x', 'y'));`;

function wrong(sql: string): readonly string[] {
  const migrations = [
    { name: '0001.sql', sql: BEFORE },
    { name: '0002.sql', sql },
  ];
  return judgeMigrations(migrations, '0001.sql')[0]?.wrong ?? [];
}

test('migrations can be applied while the version before them serves', async () => {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort();
  assert.ok(names.includes(BASELINE), `${BASELINE} is there`);
  const migrations = await Promise.all(
    names.map(async (name) => ({ name, sql: await readFile(new URL(name, FOLDER), 'utf8') })),
  );
  for (const { name, wrong: sentences } of judgeMigrations(migrations, BASELINE)) assert.deepEqual(sentences, [], name);
});

describe('a migration', () => {
  for (const sql of [
    'DROP TABLE t',
    'ALTER TABLE t DROP COLUMN n',
    'ALTER TABLE t DROP n',
    'ALTER TABLE t RENAME n TO m',
    'ALTER TABLE t ALTER COLUMN n TYPE bigint',
    'ALTER TABLE t ALTER COLUMN n SET NOT NULL',
    `ALTER TABLE t ADD COLUMN l text DEFAULT 'x', ADD COLUMN m text NOT NULL`,
    'ALTER TABLE t ADD CHECK (n > 0)',
    'ALTER TABLE t ADD CONSTRAINT t_n CHECK (n > 0)',
    'ALTER TABLE t ADD UNIQUE (n)',
    'ALTER TABLE t ADD COLUMN m text REFERENCES o (action)',
    'CREATE INDEX t_n ON t (n)',
    `ALTER TABLE t DROP CONSTRAINT t_s_check, ADD CONSTRAINT t_s_check CHECK (s IN ('a', 'c'))`,
    `ALTER TABLE o DROP CONSTRAINT o_action, ADD CONSTRAINT o_action CHECK (action IN ('x'))`,
    `ALTER TABLE attempts ADD COLUMN n integer CHECK (n > 0)`,
    `ALTER TABLE attempts DROP CONSTRAINT attempts_outcome_check, ADD CONSTRAINT attempts_outcome_check CHECK (outcome IN ('a', 'b'))`,
    'DELETE FROM t',
    'LOCK TABLE t',
  ]) {
    test(`may not ${sql}`, () => assert.equal(wrong(sql).length, 1, wrong(sql).join('\n')));
  }

  for (const sql of [
    'CREATE TABLE u (id text PRIMARY KEY, n integer NOT NULL); CREATE INDEX u_n ON u (n); ALTER TABLE u ADD CHECK (n > 0)',
    `ALTER TABLE t ADD COLUMN m text NOT NULL DEFAULT 'x'`,
    'ALTER TABLE t ADD COLUMN m integer NOT NULL GENERATED ALWAYS AS (n + 1) STORED',
    'ALTER TABLE t ALTER COLUMN s DROP NOT NULL',
    `ALTER TABLE t DROP CONSTRAINT t_s_check, ADD CONSTRAINT t_s_check CHECK (s IN ('a', 'b', 'c'))`,
    `ALTER TABLE o DROP CONSTRAINT o_action, ADD CONSTRAINT o_action CHECK (action IN ('y', 'x', 'DROP TABLE t'))`,
    `ALTER TABLE attempts ADD COLUMN n text, ADD CONSTRAINT attempts_n_check CHECK (n IN ('a', 'b')) NOT VALID`,
    `ALTER TABLE attempts DROP CONSTRAINT attempts_outcome_check, ADD CONSTRAINT attempts_outcome_check CHECK (outcome IN ('a', 'b')) NOT VALID`,
    'DROP INDEX t_n',
    `COMMENT ON TABLE t IS 'RENAME'`,
    '-- DROP TABLE t',
    'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM o; RETURN NULL; END $$',
    '-- on purpose: the table is new and no database has it yet\nDROP TABLE t',
  ]) {
    test(`may ${sql.slice(0, 100)}`, () => assert.deepEqual(wrong(sql), []));
  }
});
