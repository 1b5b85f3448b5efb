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
import { acceptOne, inMs, organization } from './mail.ts';
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

test('0.1.0 sends the pending chat-app messages that it knows; the others wait for the next upgrade', async () => {
  const { number } = await connect(pool, orgId);
  const accepted = () => acceptText(pool, orgId, number);
  const fallback_template = { name: 'hello', language: 'en', variables: [] };
  const withFallback = () => acceptText(pool, orgId, number, { fallback_template });
  const [known, again, sms, user] = [await accepted(), await accepted(), await accepted(), await accepted()];
  const [fallback, scheduled] = [await withFallback(), await acceptText(pool, orgId, number, {}, inMs(3_600_000))];
  const dispatched = [await accepted(), await accepted(), await withFallback()];
  await pool.query(`UPDATE outbox SET action = 'message_again' WHERE message_id = $1`, [again]);
  await pool.query(`UPDATE chat_messages SET channel = 'sms' WHERE id = ANY ($1)`, [[sms, dispatched[1]]]);
  await pool.query(`UPDATE chat_messages SET "to" = 'US.13491208655302741918' WHERE id = $1`, [user]);
  await pool.query(`DELETE FROM outbox WHERE message_id = ANY ($1)`, [dispatched]);
  await pool.query(`UPDATE chat_messages SET look_at = now() WHERE id = ANY ($1)`, [dispatched]);

  await execute(pool, 'UPDATE outbox');
  const { rows: locked } = await pool.query(LOCK_CHATS);
  assert.deepEqual(locked, [
    { id: known, again: false },
    { id: again, again: true },
  ]);
  const { rows: overdue } = await pool.query(FIND_OVERDUE_CHATS);
  assert.deepEqual(overdue, [{ id: dispatched[0] }]);

  await pool.query('DELETE FROM outbox WHERE message_id = ANY ($1)', [[known, again]]);
  await pool.query(`UPDATE chat_messages SET status = 'sent' WHERE id = ANY ($1)`, [[known, again, dispatched[0]]]);
  await execute(pool, 'look_at = now()');
  const rows = await lockMessageRows(pool, 10);
  assert.deepEqual(rows.map(({ message_id }) => message_id).sort(), [sms, user, fallback, scheduled].sort());
  const found = await findOverdueMessages(pool, 10);
  assert.deepEqual(found.map(({ id }) => id).sort(), dispatched.slice(1).sort());
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
