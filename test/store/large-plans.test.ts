import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { LARGE, storeManyEmails } from '../../dev/fixtures/many-emails.ts';
import { listExpiring } from '../../src/store/emails/content-erasure.ts';
import { firstSubjects, scheduledMembers } from '../../src/store/emails/batches.ts';
import { listExpiringMessages } from '../../src/store/messages/content-erasure.ts';
import { walkEmails } from '../../src/store/emails/erasure.ts';
import { findOverdue } from '../../src/store/emails/stuck.ts';
import { lockMessageRows } from '../../src/store/outbox/outbox.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { searchDeliveries } from '../../src/store/webhooks/delivery-search.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, readBy } from '../support/plans.ts';

const { pool } = await useDatabase();

const EMAILS = 30_000;
const BATCH = `bt_${EMAILS - (EMAILS % 20_000)}`;
const LIMIT = 50;
/** Emails of an organization that follow each other in time, with those of others between them. */
const MAX_ROWS = 10 * LIMIT;
const OUTBOX_ROWS = 5_000;
const DELIVERIES = 20_000;

const ADDRESS = {
  address: 'a@b.example',
  placeholder: 'x@invalid',
  likePatterns: ['%a@b.example%'],
  localPattern: '%a@%',
  pattern: 'a@b',
};
const BEFORE_ALL = { created_at: '-infinity', id: '' };
const ANY = { status: null, type: null, response: null, since: null, until: null, messageId: null };

before(async () => {
  await storeManyEmails(pool, EMAILS);
  await pool.query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, status, created_at)
     SELECT 'whd_' || n, 'wh_1', 'evt_' || n, 'email.sent', 'succeeded', now() - n * interval '1 s'
     FROM generate_series(1, $1::int) AS n`,
    [DELIVERIES],
  );
  await pool.query(
    `INSERT INTO attempts (message_id, n, call, provider) SELECT id, 1, 'call_' || id, 'smtp' FROM emails`,
  );
  await pool.query(
    `INSERT INTO email_recipients (email_id, recipient, status) SELECT id, 'a@c.example', 'sent' FROM emails`,
  );
  await pool.query(
    `INSERT INTO email_events (email_id, id, type, created_at) SELECT id, 'evt_' || id, 'email.sent', created_at FROM emails`,
  );
  await pool.query('ANALYZE');
});

describe('a number of rows that does not grow with the tables is read for', () => {
  const retention = {
    id: LARGE,
    days: 1,
    expired_at: BEFORE_ALL.created_at,
    expired_id: BEFORE_ALL.id,
    messages_expired_at: BEFORE_ALL.created_at,
    messages_expired_id: BEFORE_ALL.id,
  };
  const works: readonly (readonly [string, (db: Db) => Promise<unknown>])[] = [
    ['emails whose content expires', (db) => listExpiring(db, retention, LIMIT)],
    ['messages whose content expires', (db) => listExpiringMessages(db, retention, LIMIT)],
    ['emails to erase an address from', (db) => walkEmails(db, LARGE, ADDRESS, BEFORE_ALL, LIMIT)],
    ['the subject of a batch', (db) => firstSubjects(db, LARGE, [BATCH])],
    ['scheduled members of a batch', (db) => scheduledMembers(db, LARGE, BATCH)],
    ['deliveries of an email', (db) => searchDeliveries(db, 'wh_1', { ...ANY, messageId: 'em_1' }, null, LIMIT)],
  ];
  for (const [what, work] of works) {
    test(what, () =>
      explainEach(pool, [[what, work]], (steps, message) => {
        for (const node of steps) {
          assert.ok(readBy(node) <= MAX_ROWS, message);
          // Entries of an index that an array of ids excludes are not counted.
          assert.notEqual(node['Index Name'], 'webhook_deliveries_by_status', message);
        }
      }),
    );
  }
});

test('overdue emails are compared with the outbox in one pass, however large it is', async () => {
  await pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Large') ON CONFLICT DO NOTHING`, [LARGE]);
  await pool.query(
    `UPDATE emails SET status = 'queued', error = NULL, bounce_reason = NULL WHERE id IN (SELECT id FROM emails ORDER BY id LIMIT 1000)`,
  );
  await pool.query(`INSERT INTO outbox (message_id, action) SELECT id, 'start' FROM emails ORDER BY id LIMIT $1`, [
    OUTBOX_ROWS,
  ]);
  await pool.query('ANALYZE');
  // As little memory as a much larger outbox leaves.
  const overdue = async (db: Db) => {
    await db.query({ text: `SELECT set_config('work_mem', $1, true)`, values: ['64kB'] });
    await findOverdue(db, LIMIT);
  };
  await explainEach(pool, [['overdue emails', overdue]], (steps, message) => {
    for (const node of steps) assert.ok(readBy(node) <= 2 * OUTBOX_ROWS, message);
  });
});

test('rows of messages to start are looked up one by one, however many are pending', async () => {
  await pool.query('TRUNCATE outbox');
  await pool.query(
    `INSERT INTO chat_messages (id, org_id, number_id, "from", "to", country, type, content, status, created_at, last_event_at)
     SELECT 'wa_' || n, $1, 'num_1', '+12025550100', '+12025550101', 'US', 'text', '{}', 'queued', now(), now()
     FROM generate_series(1, $2::int) AS n`,
    [LARGE, OUTBOX_ROWS],
  );
  await pool.query(
    `INSERT INTO outbox (message_id, action) SELECT 'wa_' || n, 'message' FROM generate_series(1, $1::int) AS n`,
    [OUTBOX_ROWS],
  );
  await explainEach(pool, [['messages', (db) => lockMessageRows(db, LIMIT)]], (steps, message) => {
    for (const node of steps) assert.ok(readBy(node) <= 1_000, message);
  });
});
