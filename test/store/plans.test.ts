import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { newId } from '../../src/lib/ids.ts';
import {
  beginAttempts,
  clearChanges,
  countRepeats,
  endAttempts,
  lastAttempts,
  lockEmails,
  lockStatuses,
  readSendSizes,
} from '../../src/store/emails/attempts.ts';
import { requeueAsFallback } from '../../src/store/chat/window.ts';
import { findFinishedBatches, recordBatchMoves } from '../../src/store/emails/batches.ts';
import { checkReports, insertEmailEvents, lockChanging, updateEmails } from '../../src/store/emails/changes.ts';
import { findFileIds } from '../../src/store/emails/content-erasure.ts';
import { replaceAddressed } from '../../src/store/emails/erasure.ts';
import {
  endCopies,
  failCopies,
  recordSuppressed,
  prepareCopies,
  reportRecipients,
  statusesOfCopies,
} from '../../src/store/emails/recipients.ts';
import { scheduleNextCheck } from '../../src/store/emails/stuck.ts';
import { lockMessages, lockReported } from '../../src/store/messages/delivery.ts';
import { scheduleNextMessageCheck } from '../../src/store/messages/stuck.ts';
import { groupOutboxRows, detachFromGroup, lockEmailRows, lockLateSingles } from '../../src/store/outbox/outbox.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { enqueueProviderRemovals } from '../../src/store/suppressions/provider-lists.ts';
import { addSuppressions, findSuppressed } from '../../src/store/suppressions/suppressions.ts';
import { findEndpointsOf } from '../../src/store/webhooks/events.ts';
import { contents } from '../support/contents.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { explainingKept, flat, type PlanNode, readBy } from '../support/plans.ts';
import { accept, newEmail, organization } from './mail.ts';

/** Executions after which Postgres has cached a generic plan. */
const UNTIL_KEPT = 8;
const STORED = 3_000;
const ASKED = 5;
const RECIPIENT = 'a@example.net';
const RECIPIENT_OF_COPY = 'b@example.net';
const SENDER = '+12025550100';
let orgId: string;

const attemptOf = (message_id: string) => ({ message_id, n: 1 });

const at = new Date().toISOString();
const SENT = { status: 'sent', error: undefined, bounce_reason: undefined } as const;

/** Changes of emails, each a batch of its own, that are sent. */
const sent = (ids: readonly string[]) => {
  const change = { event: 'email.sent', at, from_status: 'queued', to_status: 'sent', detail: undefined } as const;
  const email = {
    org_id: orgId,
    marketing: false,
    has_one_recipient: true,
    status: 'queued',
    accepted_at: at,
    due_at: at,
    next_event_at: Date.parse(at),
    reached: null,
    bounced_for: null,
    from: 'a@acme.example',
    key_id: null,
    tags: null,
  } as const;
  return ids.map((id) => ({
    ...{ ...change, event_id: newId('evt') },
    ...{ email: { ...email, id, batch_id: id }, input: { id, recipient: RECIPIENT } },
  }));
};

const copiesOf = (ids: readonly string[]) =>
  ids.map((email_id) => ({ email_id, recipient: RECIPIENT_OF_COPY, suppressed: false }));

const addressOf = (id: string) => `${id}@example.net`;

const ERASED = { address: RECIPIENT, placeholder: 'x', likePatterns: ['x'], localPattern: 'x', pattern: 'x' };

/** Statements for a few emails, batches or messages that are given by their ids. */
const STATEMENTS: Readonly<Record<string, (db: Db, ids: readonly string[]) => Promise<unknown>>> = {
  lockChanging: (db, ids) => lockChanging(db, ids, null),
  checkReports: (db, ids) =>
    checkReports(
      db,
      ids.map((id) => ({
        ...{ event_id: id, email_id: id, dedupe_key: 'x', is_sent: true, occurred_at: undefined },
        ...{ recipient: RECIPIENT, evidence: { messageId: 'x', isSigned: false } },
      })),
    ),
  insertEmailEvents: (db, ids) => insertEmailEvents(db, sent(ids), new Set()),
  updateEmails: (db, ids) =>
    updateEmails(
      db,
      ids.map((id) => ({ ...SENT, id, provider: 'postmark', provider_message_id: id, last_event_at: at })),
    ),
  reportRecipients: (db, ids) =>
    reportRecipients(
      db,
      ids.map((email_id) => ({ ...SENT, email_id, recipient: RECIPIENT })),
    ),
  findEndpointsOf: (db, ids) => findEndpointsOf(db, ids),
  findFinishedBatches: (db, ids) => findFinishedBatches(db, ids),
  groupOutboxRows: (db, ids) =>
    groupOutboxRows(db, [
      { id: 'grp_1', isLate: false, members: ids.map((id, i) => ({ outboxId: String(i), id, version: 0 })) },
    ]),
  detachFromGroup: (db, ids) =>
    detachFromGroup(
      db,
      'grp_1',
      ids.map((id) => ({ id, waitMs: 0, alone: true })),
    ),
  endCopies: (db, ids) =>
    endCopies(
      db,
      ids.map((email_id) => ({
        email_id,
        recipient: RECIPIENT,
        status: 'sent',
        error: null,
        provider_message_id: 'x',
      })),
    ),
  failCopies: (db, ids) =>
    failCopies(
      db,
      ids.map((id) => ({ id, error: 'x' })),
    ),
  findSuppressed: (db, ids) =>
    findSuppressed(
      db,
      ids.map((id) => ({ org_id: orgId, email: addressOf(id) })),
    ),
  prepareCopies: (db, ids) => prepareCopies(db, copiesOf(ids)),
  scheduleNextCheck: (db, ids) => scheduleNextCheck(db, ids),
  scheduleNextMessageCheck: (db, ids) => scheduleNextMessageCheck(db, ids),
  replaceAddressed: (db, ids) =>
    replaceAddressed(
      db,
      ERASED,
      ids.map((id) => ({ id, to: [RECIPIENT], cc: null, bcc: null, reply_to: null, is_open: false })),
    ),
  findFileIds: (db, ids) => findFileIds(db, ids),
  askForProviderRemoval: (db, ids) => enqueueProviderRemovals(db, orgId, ids.map(addressOf)),
  lockMessages: (db, ids) => lockMessages(db, contents, ids),
  lockReported: (db, ids) => lockReported(db, ids),
  requeueAsFallback: (db, ids) => requeueAsFallback(db, ids),
  statusesOfCopies: (db, ids) => statusesOfCopies(db, ids),
  lockEmailRows: (db, ids) => lockEmailRows(db, ids.length),
  lockLateSingles: (db, ids) => lockLateSingles(db, '0', ids.length),
  lockEmails: (db, ids) => lockEmails(db, ids),
  lockStatuses: (db, ids) => lockStatuses(db, ids),
  readSendSizes: (db, ids) => readSendSizes(db, ids),
  lastAttempts: (db, ids) => lastAttempts(db, ids),
  countRepeats: (db, ids) =>
    countRepeats(
      db,
      ids.map((id) => ({ ...attemptOf(id), call: id })),
    ),
  clearChanges: (db, ids) => clearChanges(db, ids.map(attemptOf)),
  endAttempts: (db, ids) =>
    endAttempts(
      db,
      ids.map((id) => ({ ...attemptOf(id), outcome: 'sent', detail: null })),
    ),
};

/** Rows of the tables when the plans are made. Empty ones, as those of a new installation, have no statistics. */
for (const rows of [0, ASKED])
  describe(`a plan that was made for tables with ${rows} rows`, () => {
    let database: TestDatabase;
    let client: pg.PoolClient;

    const store = async (count: number) => {
      const { pool } = database;
      const emails = Array.from({ length: count }, () => newEmail({ batch_id: 'bt_1' }));
      const ids = emails.map(({ id }) => id);
      await accept(pool, orgId, emails);
      await beginAttempts(
        pool,
        ids.map((id) => ({ ...attemptOf(id), call: id, provider: 'postmark' })),
      );
      await recordBatchMoves(pool, sent(ids));
      await recordSuppressed(
        pool,
        ids.map((email_id) => ({ email_id, recipient: RECIPIENT })),
      );
      await prepareCopies(pool, copiesOf(ids));
      await addSuppressions(
        pool,
        ids.map((id) => ({ id, org_id: orgId, message_id: id, email: addressOf(id), origin: 'bounce' })),
      );
      // Batches, files and messages with the ids of the emails.
      await pool.query(`INSERT INTO batches (id, org_id, total, created_at) SELECT unnest($1::text[]), $2, 1, now()`, [
        ids,
        orgId,
      ]);
      await pool.query(
        `INSERT INTO attachments (id, org_id, email_id, position, filename, content_type, size, look_at)
       SELECT id, $2, id, 0, 'a', 'text/plain', 1, now() FROM unnest($1::text[]) AS id`,
        [ids, orgId],
      );
      await pool.query(
        `INSERT INTO chat_messages (id, org_id, channel, number_id, "from", "to", country, type, content, status, created_at, last_event_at)
       SELECT id, $2, 'sms', 'x', $3, id, 'US', 'text', '{"fallback_template": {}}', 'queued', now(), now() FROM unnest($1::text[]) AS id`,
        [ids, orgId, SENDER],
      );
      await pool.query(
        'INSERT INTO sms_opt_outs (org_id, sender, recipient) SELECT $2, $3, id FROM unnest($1::text[]) AS id',
        [ids, orgId, SENDER],
      );
      return ids;
    };

    const readsOnly = async (name: string, asked: readonly string[]) => {
      const plans: PlanNode[] = [];
      await client.query('BEGIN');
      await STATEMENTS[name]?.(explainingKept(client, plans), asked);
      await client.query('ROLLBACK');
      assert.ok(plans.length > 0, name);
      for (const node of plans.flatMap(flat)) {
        const most = 10 * ASKED;
        assert.ok(readBy(node) <= most, `${name} has read ${readBy(node)} rows: ${JSON.stringify(plans, null, 1)}`);
      }
    };

    before(async () => {
      database = await testDatabase();
      orgId = await organization(database.pool);
      await database.pool.query('INSERT INTO batches (id, org_id, total, created_at) VALUES ($1, $2, $3, now())', [
        'bt_1',
        orgId,
        STORED,
      ]);
      const few = rows > 0 ? await store(rows) : Array.from({ length: ASKED }, () => newId('em'));
      await database.pool.query('DELETE FROM outbox');
      if (rows > 0) await database.pool.query('ANALYZE');
      client = await database.pool.connect();
      for (const work of Object.values(STATEMENTS)) {
        for (let i = 0; i < UNTIL_KEPT; i++) {
          await client.query('BEGIN');
          await work(client, few);
          await client.query('ROLLBACK');
        }
      }
    });
    after(async () => {
      client.release();
      await database.drop();
    });

    test('reads only the given rows of thousands', async () => {
      const stored = await store(STORED);
      const asked = stored.slice(-ASKED);
      for (const name of Object.keys(STATEMENTS)) await readsOnly(name, asked);
      // A batch is not searched for its pending members, wherever they are.
      await database.pool.query(`UPDATE emails SET status = 'sent' WHERE NOT id = ANY ($1)`, [stored.slice(0, ASKED)]);
      await readsOnly('findFinishedBatches', asked);
    });
  });
