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
import { findFinishedBatches, recordBatchMoves } from '../../src/store/emails/batches.ts';
import { checkReports, insertEmailEvents, lockChanging, updateEmails } from '../../src/store/emails/changes.ts';
import { endCopies, failCopies, noteSuppressed, reportRecipients } from '../../src/store/emails/recipients.ts';
import { groupOutboxRows, detachFromGroup, lockEmailRows, lockLateSingles } from '../../src/store/outbox/outbox.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { addSuppressions, findSuppressed } from '../../src/store/suppressions/suppressions.ts';
import { findEndpointsOf } from '../../src/store/webhooks/events.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { explainingKept, flat, type PlanNode, readBy } from '../support/plans.ts';
import { accept, newEmail, organization } from './mail.ts';

/** Executions after which Postgres has cached a generic plan, made for tables of a few rows. */
const UNTIL_KEPT = 8;
const STORED = 3_000;
const ASKED = 5;
const RECIPIENT = 'a@example.net';
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
    next_event_at: at,
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

/** Statements for a few emails that are given by their ids. */
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
  insertEmailEvents: (db, ids) => insertEmailEvents(db, sent(ids)),
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
    groupOutboxRows(db, [{ id: 'grp_1', members: ids.map((id, i) => ({ outboxId: String(i), id, version: 0 })) }]),
  detachFromGroup: (db, ids) =>
    detachFromGroup(
      db,
      'grp_1',
      ids.map((id) => ({ id, waitMs: 0 })),
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
      ids.map((id) => ({ org_id: orgId, email: `${id}@example.net` })),
    ),
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

describe('a plan that was made for tables with a few rows', () => {
  let database: TestDatabase;
  let client: pg.PoolClient;

  const store = async (count: number) => {
    const emails = Array.from({ length: count }, () => newEmail({ batch_id: 'bt_1' }));
    const ids = emails.map(({ id }) => id);
    await accept(database.pool, orgId, emails);
    await beginAttempts(
      database.pool,
      ids.map((id) => ({ ...attemptOf(id), call: id, provider: 'postmark' })),
    );
    await recordBatchMoves(database.pool, sent(ids));
    await noteSuppressed(
      database.pool,
      ids.map((email_id) => ({ email_id, recipient: RECIPIENT })),
    );
    await addSuppressions(
      database.pool,
      ids.map((id) => ({
        ...{ id, org_id: orgId, message_id: id },
        ...{ email: `${id}@example.net`, origin: 'bounce' },
      })),
    );
    return ids;
  };

  const readsOnly = async (name: string, asked: readonly string[]) => {
    const plans: PlanNode[] = [];
    await client.query('BEGIN');
    await STATEMENTS[name]?.(explainingKept(client, plans), asked);
    await client.query('ROLLBACK');
    assert.equal(plans.length, 1, `${name} is one statement`);
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
    const few = await store(ASKED);
    await database.pool.query('DELETE FROM outbox');
    await database.pool.query('ANALYZE');
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
