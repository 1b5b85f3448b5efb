import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { insertAudit } from '../../src/store/accounts/audit.ts';
import { lockMessageRows } from '../../src/store/outbox/outbox.ts';
import { findOverdueMessages } from '../../src/store/messages/stuck.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { backfillStatistics } from '../../src/upkeep/statistics.ts';
import { blocks } from '../support/documents.ts';
import { testDatabase, useDatabase } from '../support/database.ts';
import { acceptText, connect } from './chats.ts';
import { acceptOne, organization } from './mail.ts';
import { countEmails, readFigures } from './statistics-truth.ts';

const PATH = 'docs/maintenance.md';
const SQL = blocks({ path: PATH, text: readFileSync(new URL(`../../${PATH}`, import.meta.url), 'utf8') }, 'sql');

/** Executes the block of docs/maintenance.md that contains some words, as psql does. @returns the rows of the last statement */
async function execute(db: Db, words: string): Promise<Record<string, unknown>[]> {
  const block = SQL.find(({ text }) => text.includes(words));
  assert.ok(block, words);
  let rows: Record<string, unknown>[] = [];
  for (const [, statement = '', end] of block.text.matchAll(/(\S[^;\\]*)(;|\\gexec)/g)) {
    ({ rows } = await db.query<Record<string, unknown>>(statement));
    if (end === ';') continue;
    for (const row of rows) for (const generated of Object.values(row)) await db.query(String(generated));
  }
  return rows;
}

// Two statements of 0.1.0.
const FIND_OVERDUE_CHATS = `
  SELECT id FROM chat_messages
  WHERE look_at <= now() AND status = 'queued' AND id NOT IN (SELECT message_id FROM outbox) ORDER BY look_at`;
const LOCK_CHATS = `
  SELECT message.id, outbox.action = 'chat_again' AS again
  FROM outbox JOIN chat_messages AS message ON message.id = outbox.message_id
  WHERE outbox.action IN ('chat', 'chat_again') AND (outbox.retry_at IS NULL OR outbox.retry_at <= now()) ORDER BY outbox.id`;

const { pool } = await useDatabase();
const orgId = await organization(pool);

test('0.1.0 leaves pending messages, whose content it cannot read, to the next upgrade', async () => {
  const { number } = await connect(pool, orgId);
  const accepted = () => acceptText(pool, orgId, number);
  const [waiting, dispatched] = [await accepted(), await accepted()];
  await pool.query(`DELETE FROM outbox WHERE message_id = $1`, [dispatched]);
  await pool.query(`UPDATE chat_messages SET look_at = now() WHERE id = $1`, [dispatched]);

  await execute(pool, 'look_at = NULL');
  assert.deepEqual((await pool.query(LOCK_CHATS)).rows, []);
  assert.deepEqual((await pool.query(FIND_OVERDUE_CHATS)).rows, []);

  await execute(pool, 'look_at = now()');
  assert.deepEqual(
    (await lockMessageRows(pool, 10)).map(({ message_id }) => message_id),
    [waiting],
  );
  assert.deepEqual(
    (await findOverdueMessages(pool, 10)).map(({ id }) => id),
    [dispatched],
  );
});

test('what 0.1.0 accepted after the end of the backfill is counted', async () => {
  const id = await acceptOne(pool, orgId);
  await pool.query('UPDATE emails SET reached = NULL WHERE id = $1', [id]);
  await pool.query('DELETE FROM stat_additions WHERE org_id = $1', [orgId]);
  await execute(pool, 'stat_backfills');
  for (let run = 0; run < 5; run++) await backfillStatistics(pool, Date.now() + 120_000);
  assert.deepEqual(await readFigures(pool, orgId, []), await countEmails(pool, orgId));
  assert.equal((await pool.query('SELECT FROM stat_backfills')).rowCount, 0);
  await execute(pool, 'stat_backfills');
  await execute(pool, 'stat_backfills');
});

test('erasures since the upgrade are listed', async () => {
  const entry = { org_id: orgId, actor_kind: 'key', actor_id: 'key_1', target: null, detail: {} } as const;
  await insertAudit(pool, { ...entry, action: 'erasures.create' });
  await insertAudit(pool, { ...entry, action: 'erasures.create' });
  await insertAudit(pool, { ...entry, action: 'domains.create' });
  await pool.query(`UPDATE audit_log SET at = now() - interval '1 year' WHERE id = (SELECT min(id) FROM audit_log)`);
  const listed = await execute(pool, 'erasures.create');
  assert.deepEqual(
    listed.map(({ org_id, key_id }) => [org_id, key_id]),
    [[orgId, 'key_1']],
  );
});

test('the indexes that 0.1.0 needs are created and replaced', async (t) => {
  // CONCURRENTLY waits for other transactions of the database, and settings are those of a connection.
  const database = await testDatabase(1);
  t.after(() => database.drop());
  const countValid = async (index: string): Promise<number | undefined> => {
    const { rows } = await database.pool.query<{ partitions: number }>(
      `SELECT count(*)::int AS partitions FROM pg_inherits JOIN pg_index ON indexrelid = inhparent
       WHERE inhparent = $1::regclass AND indisvalid`,
      [index],
    );
    return rows[0]?.partitions;
  };
  const partitions = await countValid('emails_pkey');
  assert.ok(partitions !== undefined && partitions >= 2);
  for (let time = 0; time < 2; time++) assert.deepEqual(await execute(database.pool, '%s_of_batch'), []);
  assert.equal(await countValid('emails_of_batch'), partitions);
  assert.equal(await countValid('email_events_of_email'), partitions);

  const { rows: before } = await database.pool.query(INDEXES);
  // An installation that began with this version has the index, with other names of its partitions.
  assert.deepEqual(await execute(database.pool, '%s_by_email'), []);
  const { rows: without } = await database.pool.query(INDEXES);
  assert.equal(before.length - without.length, partitions + 1);
  await database.pool.query('DROP INDEX email_events_by_email');
  // An interrupted CREATE INDEX CONCURRENTLY leaves an invalid index, which can be dropped while it is not attached.
  await database.pool.query('CREATE INDEX email_events_default_by_email ON email_events_default (email_id)');
  await database.pool.query(
    `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'email_events_default_by_email'::regclass`,
  );
  assert.equal((await execute(database.pool, '%s_by_email')).length, 2);
  await database.pool.query('DROP INDEX email_events_default_by_email');
  for (let time = 0; time < 2; time++) assert.deepEqual(await execute(database.pool, '%s_by_email'), []);
  assert.equal(await countValid('email_events_by_email'), partitions);
  await execute(database.pool, 'DROP INDEX IF EXISTS email_events_of_email');
  const { rows: after } = await database.pool.query(INDEXES);
  assert.equal(without.length - after.length, partitions + 1);
});

const INDEXES = `SELECT FROM pg_index JOIN pg_class ON indexrelid = pg_class.oid WHERE relname LIKE 'email%'`;
