import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idTime, newId } from '../../src/lib/ids.ts';
import { lockEmails, lockStatuses } from '../../src/store/emails/attempts.ts';
import { eraseContents } from '../../src/store/emails/content-erasure.ts';
import { lockAddressed } from '../../src/store/emails/erasure.ts';
import { failCopies } from '../../src/store/emails/recipients.ts';
import { requeueEmails, scheduleNextCheck } from '../../src/store/emails/stuck.ts';
import { detachFromGroup, groupOutboxRows } from '../../src/store/outbox/outbox.ts';
import { type Db, transaction } from '../../src/store/postgres/pool.ts';
import { waitForBlocked } from '../support/locks.ts';
import { organizationFixture } from '../support/organization.ts';
import { acceptOne } from './mail.ts';

const { pool, orgId } = await organizationFixture(5);

const member = (id: string) => ({ outboxId: null, id, version: 0 });
const stateOf = async (db: Db, id: string) => {
  const { rows } = await db.query<{ workflow_id: string; look_at: string | null }>(
    'SELECT workflow_id, look_at FROM emails WHERE id = $1',
    [id],
  );
  return rows[0];
};

/** Defers the only recipient of an email, as a worker does. */
async function defer(db: Db, id: string): Promise<void> {
  await db.query(`UPDATE emails SET status = 'sent', deferred = true WHERE id = $1`, [id]);
  await db.query(`INSERT INTO email_recipients (email_id, recipient, status, call) VALUES ($1, 'b', 'queued', 'c1')`, [
    id,
  ]);
}

/** Runs `work` while a transaction has changed the rows that it locks. @returns its result, after that transaction */
async function whileChanged<T>(change: (db: Db) => Promise<unknown>, work: (db: Db) => Promise<T>): Promise<T> {
  const working = await transaction(pool, async (client) => {
    await change(client);
    const promise = transaction(pool, work);
    promise.catch(() => undefined);
    await waitForBlocked(pool);
    return { promise };
  });
  return working.promise;
}

/** Statements that lock an email, with what they return or store for one of which a recipient was deferred meanwhile. */
const STATEMENTS: Readonly<Record<string, [run: (db: Db, id: string) => Promise<unknown>, expected: unknown]>> = {
  lockEmails: [async (db, id) => (await lockEmails(db, [id]))[0]?.copies_left, true],
  lockStatuses: [async (db, id) => (await lockStatuses(db, [id])).get(id), 'queued'],
  lockAddressed: [async (db, id) => (await lockAddressed(db, [id]))[0]?.is_open, true],
  eraseContents: [async (db, id) => (await eraseContents(db, orgId, [id]))[0]?.is_open, true],
  requeueEmails: [
    async (db, id) =>
      (await requeueEmails(db, id, [id], 'closed', { provider: 'postmark', canBeAsked: true })).includes(id),
    true,
  ],
  scheduleNextCheck: [
    async (db, id) => {
      await scheduleNextCheck(db, [id]);
      return typeof (await stateOf(db, id))?.look_at;
    },
    'string',
  ],
  groupOutboxRows: [
    async (db, id) => {
      await groupOutboxRows(db, [{ id: 'grp_1', isLate: false, members: [member(id)] }]);
      return (await stateOf(db, id))?.workflow_id === 'grp_1';
    },
    false,
  ],
  detachFromGroup: [
    async (db, id) => {
      await detachFromGroup(db, id, [{ id, waitMs: 0, alone: false }]);
      const { rows } = await db.query<{ action: string }>('SELECT action FROM outbox WHERE message_id = $1', [id]);
      return rows;
    },
    [{ action: 'leave' }],
  ],
};

for (const [name, [run, expected]] of Object.entries(STATEMENTS))
  test(`${name} sees the deferred recipients that the transaction it waited for has recorded`, async () => {
    const id = await acceptOne(pool, orgId);
    await pool.query('DELETE FROM outbox');
    const found = await whileChanged(
      (holder) => defer(holder, id),
      (client) => run(client, id),
    );
    assert.deepEqual(found, expected);
  });

for (const lock of [lockAddressed, (db: Db, ids: string[]) => eraseContents(db, orgId, ids)])
  test(`${lock.name || 'eraseContents'} finds deferred recipients in the partition of an email whose lock it waited for`, async () => {
    // A partition of its own, from before the database was created.
    const old = `em_${idTime(Date.now() - 400 * 86_400_000)}${newId('em').slice(-16)}`;
    const ids = [await acceptOne(pool, orgId, { id: old }), await acceptOne(pool, orgId)];
    for (const id of ids) await defer(pool, id);
    const found = await whileChanged(
      (holder) => holder.query('UPDATE emails SET look_at = now() WHERE id = $1', [old]),
      (client) => lock(client, ids),
    );
    assert.deepEqual(
      found.map(({ id, is_open }) => ({ id, is_open })),
      ids.map((id) => ({ id, is_open: true })),
    );
  });

test('failCopies keeps a copy that another call took while it waited', async () => {
  const id = await acceptOne(pool, orgId);
  await defer(pool, id);
  const failed = await whileChanged(
    (holder) => holder.query(`UPDATE email_recipients SET call = 'c2' WHERE email_id = $1`, [id]),
    (client) => failCopies(client, [{ id, error: 'x', call: 'c1' }]),
  );
  assert.deepEqual(failed, []);
});
