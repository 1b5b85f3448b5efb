import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { insertAttachments } from '../../src/store/emails/attachments.ts';
import { deleteReservations, reserveFiles } from '../../src/store/files/reservations.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import { FilesNotRemoved, type FileStore } from '../../src/store/files/file-store.ts';
import { allIds } from '../store/files/store-contract.ts';
import { accept, newEmail } from '../store/mail.ts';
import { temporaryFolder } from '../support/folder.ts';
import { organizationFixture } from '../support/organization.ts';
import { runAllSteps, upkeepActivities } from './activities.ts';

const { pool, orgId } = await organizationFixture(5);

async function make(t: TestContext, wrap: (store: FileStore) => FileStore = (store) => store) {
  await pool.query('DELETE FROM attachments');
  await pool.query('DELETE FROM file_reservations');
  await pool.query('DELETE FROM stored_bytes');
  const folder = await temporaryFolder(t);
  const store = diskStore(folder);
  const log: string[] = [];
  const activities = upkeepActivities(pool, wrap(store), log);
  /** Stores an email with a file, both `days` old. @returns their ids */
  const old = async (days: number, status = 'sent', events: Record<string, number> = {}): Promise<[string, string]> => {
    const email = newEmail();
    await accept(pool, orgId, [email]);
    const id = newId('att');
    const file = { id, filename: 'a.txt', content_type: 'text/plain', size: 1, content_id: null };
    await reserveFiles(pool, orgId, [file], { maxStoredBytes: 0, cost: 1 });
    await store.put(id, Buffer.from('x'));
    await insertAttachments(pool, orgId, email.id, [file]);
    const past = `now() - make_interval(hours => $2 * 24)`;
    await pool.query(
      `UPDATE emails SET created_at = ${past}, status = $3, error = 'x',
         scheduled_at = CASE WHEN $3 = 'scheduled' THEN now() END WHERE id = $1`,
      [email.id, days, status],
    );
    await pool.query(`UPDATE attachments SET look_at = ${past} + interval '720 hours' WHERE email_id = $1`, [
      email.id,
      days,
    ]);
    for (const [type, ago] of Object.entries(events)) {
      await pool.query(`INSERT INTO email_events (email_id, id, type, created_at) VALUES ($1, $3, $4, ${past})`, [
        email.id,
        ago,
        newId('evt'),
        type,
      ]);
    }
    return [email.id, id];
  };
  const deleted = async (id: string): Promise<boolean> => {
    const { rows } = await pool.query<{ deleted: boolean }>(
      'SELECT deleted_at IS NOT NULL AS deleted FROM attachments WHERE id = $1',
      [id],
    );
    return rows[0]?.deleted === true;
  };
  /** Puts a folder in the place of a file, so that the store cannot delete the file. */
  const makeUndeletable = async (id: string): Promise<void> => {
    await store.remove([id]);
    await mkdir(join(folder, id.slice(-2), id), { recursive: true });
  };
  return { store, activities, old, deleted, makeUndeletable, log };
}

/** Adds files to an email that is older than their retention. */
async function insertExpiredFiles(emailId: string, count: number): Promise<void> {
  const files = Array.from({ length: count }, (_, i) => ({
    id: newId('att'),
    filename: `${i}.txt`,
    content_type: 'text/plain',
    size: 1,
    content_id: null,
  }));
  await reserveFiles(pool, orgId, files, { maxStoredBytes: 0, cost: 1 });
  await insertAttachments(pool, orgId, `${emailId}x`, files);
  await pool.query(
    `UPDATE attachments SET email_id = $1, position = position + 1, look_at = now() - interval '1 second' WHERE email_id = $2`,
    [emailId, `${emailId}x`],
  );
}

/** Wraps a store that cannot delete some files. */
function refusing(store: FileStore, undeletable: ReadonlySet<string>): FileStore {
  return {
    ...store,
    async remove(ids) {
      const refused = ids.filter((id) => undeletable.has(id));
      await store.remove(ids.filter((id) => !undeletable.has(id)));
      if (refused.length > 0) throw new FilesNotRemoved(refused, new Error('refused'));
    },
  };
}

function requireNotRemoved(error: unknown): void {
  if (!(error instanceof FilesNotRemoved)) throw error;
}

describe('expired files', () => {
  test('are deleted 30 days after the send or the end, and other files are kept', async (t) => {
    const { store, activities, old, deleted } = await make(t);
    const gone = [
      await old(31, 'sent', { 'email.sent': 31 }),
      await old(40, 'delivered', { 'email.sent': 30, 'email.delivered': 2 }),
      await old(60, 'canceled', { 'email.canceled': 30 }),
      await old(31, 'failed', { 'email.failed': 30 }),
      await old(60, 'sent', { 'email.failed': 40, 'email.sent': 30 }),
    ];
    const kept = [
      await old(29, 'sent', { 'email.sent': 29 }),
      await old(60, 'sent', { 'email.sent': 29 }),
      await old(60, 'canceled', { 'email.canceled': 29 }),
      await old(60, 'sent', { 'email.failed': 40, 'email.sent': 29 }),
      await old(60, 'scheduled'),
      await old(60, 'queued'),
      await old(60, 'delivered', { 'email.delivered': 59 }),
    ];
    const [copied] = kept.at(-1) as [string, string];
    await pool.query('UPDATE emails SET marketing = true WHERE id = $1', [copied]);
    await pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status) VALUES ($1, 'a@example.net', 'queued')`,
      [copied],
    );
    assert.equal(await runAllSteps(() => activities.expireAttachments()), gone.length);
    for (const [, id] of gone) {
      assert.ok(await deleted(id));
      assert.equal(await store.open(id), undefined);
    }
    for (const [, id] of kept) assert.ok(!(await deleted(id)));
    assert.deepEqual(await allIds(store), kept.map(([, id]) => id).sort());
    assert.deepEqual(await activities.expireAttachments(), { done: 0, next: null });
  });

  test('are checked again when they may have expired', async (t) => {
    const { activities, old } = await make(t);
    const [, sent] = await old(60, 'sent', { 'email.sent': 29 });
    const [, queued] = await old(60, 'queued');
    await activities.expireAttachments();
    const { rows } = await pool.query<{ id: string; days: number }>(
      'SELECT id, extract(epoch FROM look_at - now())::float8 / 86400 AS days FROM attachments',
    );
    const days = new Map(rows.map((row) => [row.id, row.days]));
    assert.ok(Math.abs((days.get(sent) ?? 0) - 1) < 0.01);
    assert.ok(Math.abs((days.get(queued) ?? 0) - 30) < 0.01);
  });

  test('are deleted in steps of 500', async (t) => {
    const { activities, old, store } = await make(t);
    const [emailId] = await old(60, 'sent', { 'email.sent': 31 });
    await insertExpiredFiles(emailId, 1_200);
    assert.equal((await activities.expireAttachments()).done, 500);
    assert.equal(await runAllSteps(() => activities.expireAttachments()), 701);
    assert.deepEqual(await allIds(store), []);
  });

  test('stay recorded while the store cannot delete them', async (t) => {
    const { activities, old, deleted } = await make(t, (store) => ({
      ...store,
      remove: () => Promise.reject(new Error('away')),
    }));
    const [, id] = await old(31, 'sent', { 'email.sent': 31 });
    await assert.rejects(activities.expireAttachments(), /away/);
    assert.ok(!(await deleted(id)));
  });

  test('are deleted although another one cannot be deleted, for which the last step fails', async (t) => {
    const { activities, old, makeUndeletable } = await make(t);
    const [emailId, id] = await old(60, 'sent', { 'email.sent': 60 });
    await makeUndeletable(id);
    await insertExpiredFiles(emailId, 600);
    assert.deepEqual(await activities.expireAttachments(), { done: 499, next: '' });
    await assert.rejects(activities.expireAttachments(), FilesNotRemoved);
    const { rows } = await pool.query('SELECT id FROM attachments WHERE deleted_at IS NULL');
    assert.deepEqual(rows, [{ id }]);
  });

  test('are deleted although a whole step of older ones cannot be deleted', async (t) => {
    const undeletable = new Set<string>();
    const { activities, old } = await make(t, (disk) => refusing(disk, undeletable));
    const [emailId, id] = await old(31, 'sent', { 'email.sent': 31 });
    await insertExpiredFiles(emailId, 500);
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM attachments WHERE id <> $1', [id]);
    for (const each of rows) undeletable.add(each.id);
    await pool.query(`UPDATE attachments SET look_at = now() - interval '2 hours' WHERE id = $1`, [id]);
    await pool.query(`UPDATE attachments SET look_at = now() - interval '3 hours' WHERE id <> $1`, [id]);
    for (let attempt = 0; attempt < 2; attempt++) await activities.expireAttachments().catch(requireNotRemoved);
    const left = await pool.query<{ id: string }>('SELECT id FROM attachments WHERE deleted_at IS NULL');
    assert.deepEqual(new Set(left.rows.map((row) => row.id)), undeletable);
    await assert.rejects(activities.expireAttachments(), FilesNotRemoved);
  });
});

const erasureId = (old: boolean): string => `era_${fileId(old).slice(4)}`;

/** A new file id; an old one is of January 2025. */
const fileId = (old: boolean): string => {
  const id = newId('att');
  return old ? `att_01jk${id.slice(8)}` : id;
};
const storedBytes = async (): Promise<number> => {
  const { rows } = await pool.query<{ bytes: number }>('SELECT bytes::float8 AS bytes FROM stored_bytes');
  return rows[0]?.bytes ?? 0;
};

describe('files that no email refers to', () => {
  const reserve = (ids: readonly string[], hours = 0): Promise<unknown> =>
    reserveFiles(
      pool,
      orgId,
      ids.map((id) => ({ id, size: 10 })),
      { maxStoredBytes: 0, cost: 1 },
    ).then(() =>
      pool.query(
        'UPDATE file_reservations SET created_at = created_at - make_interval(hours => $2) WHERE id = ANY ($1)',
        [ids, hours],
      ),
    );

  test('are removed an hour after their request reserved them', async (t) => {
    const { store, activities, old } = await make(t);
    const [, kept] = await old(2, 'sent', { 'email.sent': 2 });
    const [aged, young] = [fileId(false), fileId(false)];
    await reserve([aged], 2);
    await reserve([young]);
    for (const id of [aged, young]) await store.put(id, Buffer.from('x'));
    assert.equal(await storedBytes(), 21);
    assert.equal(await runAllSteps(() => activities.sweepFiles()), 1);
    assert.deepEqual(await allIds(store), [kept, young].sort());
    assert.equal(await storedBytes(), 11);
  });

  test('are removed although another one cannot be removed, for which the sweep fails', async (t) => {
    const { activities, makeUndeletable } = await make(t);
    const [broken, removed] = [fileId(false), fileId(false)];
    await reserve([broken, removed], 2);
    await makeUndeletable(broken);
    await assert.rejects(activities.sweepFiles(), FilesNotRemoved);
    assert.equal(await storedBytes(), 10);
  });

  test('are removed although a whole step of older ones cannot be removed', async (t) => {
    const undeletable = new Set(Array.from({ length: 500 }, () => fileId(false)));
    const { store, activities } = await make(t, (disk) => refusing(disk, undeletable));
    const id = fileId(false);
    await reserve([...undeletable], 3);
    await reserve([id], 2);
    await store.put(id, Buffer.from('x'));
    for (let attempt = 0; attempt < 2; attempt++) await activities.sweepFiles().catch(requireNotRemoved);
    assert.deepEqual(await allIds(store), []);
    await assert.rejects(activities.sweepFiles(), FilesNotRemoved);
  });

  test('are removed by a later sweep after a failure, and cannot be attached meanwhile', async (t) => {
    let isAway = true;
    const { store, activities } = await make(t, (disk) => ({
      ...disk,
      remove: (ids) => (isAway ? Promise.reject(new Error('away')) : disk.remove(ids)),
    }));
    const id = fileId(false);
    await reserve([id], 2);
    await store.put(id, Buffer.from('x'));
    await assert.rejects(activities.sweepFiles(), /away/);
    const file = { id, filename: 'a.txt', content_type: 'text/plain', size: 10, content_id: null };
    await assert.rejects(insertAttachments(pool, orgId, 'em_late', [file]), /is being removed/);
    isAway = false;
    assert.equal(await runAllSteps(() => activities.sweepFiles()), 1);
    assert.deepEqual(await allIds(store), []);
  });

  test('are kept and reported when this installation did not write them', async (t) => {
    const { store, activities, log } = await make(t);
    const foreign = Array.from({ length: 200 }, () => fileId(true));
    await Promise.all(foreign.map((id) => store.put(id, Buffer.from('x'))));
    assert.equal(await runAllSteps(() => activities.sweepFiles()), 0);
    assert.equal(await runAllSteps((from) => activities.reportUnknownFiles(from)), 200);
    assert.deepEqual(await allIds(store), foreign.sort());
    assert.ok(log.some((line) => line.includes('files that are missing in the database')));
  });

  test('are not reported when they are records of erasures', async (t) => {
    const { store, activities } = await make(t);
    await store.put(erasureId(true), Buffer.from('x'));
    assert.equal(await runAllSteps((from) => activities.reportUnknownFiles(from)), 0);
  });

  test('are not reported while they are reserved or recent', async (t) => {
    const { store, activities, old } = await make(t);
    await old(2, 'sent', { 'email.sent': 2 });
    const [known, young] = [fileId(true), fileId(false)];
    await reserve([known]);
    for (const id of [known, young]) await store.put(id, Buffer.from('x'));
    assert.equal(await runAllSteps((from) => activities.reportUnknownFiles(from)), 0);
    await deleteReservations(pool, [known]);
    assert.equal(await runAllSteps((from) => activities.reportUnknownFiles(from)), 1);
  });
});

test('records of erasures are deleted after a year, and attachments are not', async (t) => {
  const { store, activities } = await make(t);
  const day = 86_400_000;
  const ids = [364, 367, 800].map((days) => `era_${newId('att', Date.now() - days * day).slice(4)}`);
  const attachment = fileId(true);
  for (const id of [...ids, attachment]) await store.put(id, Buffer.from('x'));
  assert.equal(await runAllSteps((from) => activities.deleteOldErasures(from)), 2);
  assert.deepEqual(await allIds(store, 'era'), ids.slice(0, 1));
  assert.deepEqual(await allIds(store), [attachment]);
});
