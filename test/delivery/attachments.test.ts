import assert from 'node:assert/strict';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import type { OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import { insertAttachments } from '../../src/store/emails/attachments.ts';
import { reserveFiles } from '../../src/store/files/reservations.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import { type FileStore, FileStoreUnavailable } from '../../src/store/files/file-store.ts';
import { newFileId } from '../store/files/store-contract.ts';
import { temporaryFolder } from '../support/folder.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness, ScriptedProvider, sent } from './harness.ts';

const log = pino({ level: 'silent' });

const { pool, orgId } = await organizationFixture(10);

/** A harness with a disk store, and a function that attaches files to an email. */
async function make(t: TestContext, wrap: (store: FileStore) => FileStore = (store) => store, folder?: string) {
  const store = diskStore(folder ?? (await temporaryFolder(t)));
  const provider = new ScriptedProvider();
  const seen: OutgoingEmail[] = [];
  provider.refuses = (email) => {
    seen.push(email);
    return undefined;
  };
  const set = harness(pool, orgId, [provider], { largeEmails: makeLargeEmails(pool, wrap(store), log) });
  const attach = async (emailId: string, contents: Record<string, string>): Promise<string[]> => {
    const files = Object.entries(contents).map(([filename, content]) => ({
      id: newFileId(),
      filename,
      content_type: 'text/plain',
      size: Buffer.byteLength(content),
      content_id: filename.startsWith('inline') ? filename : null,
    }));
    for (const file of files) await store.put(file.id, Buffer.from(contents[file.filename] ?? ''));
    await reserveFiles(pool, orgId, files, { maxStoredBytes: 0, cost: 1 });
    await insertAttachments(pool, orgId, emailId, files);
    return files.map(({ id }) => id);
  };
  return { store, provider, seen, attach, ...set };
}

describe('an email with files', () => {
  test('is sent with all of them, in order', async (t) => {
    const { accept, attach, deliverOne, seen, attempts } = await make(t);
    const member = await accept();
    await attach(member.id, { 'a.txt': 'one', 'inline.png': 'two', empty: '' });
    assert.deepEqual(await deliverOne(member), sent(member.id));
    const files = seen[0]?.files.map((file) => ({ ...file, content: String(file.content) }));
    assert.deepEqual(files, [
      { filename: 'a.txt', contentType: 'text/plain', contentId: null, content: 'one' },
      { filename: 'inline.png', contentType: 'text/plain', contentId: 'inline.png', content: 'two' },
      { filename: 'empty', contentType: 'text/plain', contentId: null, content: '' },
    ]);
    assert.equal((await attempts(member.id)).length, 1);
  });

  test('has its own call, and the others of its group share one', async (t) => {
    const { acceptMany, attach, deliver, provider } = await make(t);
    const members = await acceptMany(5);
    const [, second, , fourth] = members;
    await attach(second?.id ?? '', { 'a.txt': 'x' });
    await attach(fourth?.id ?? '', { 'a.txt': 'y' });
    const results = await deliver(...members);
    assert.deepEqual(results.map(({ id }) => id).sort(), members.map(({ id }) => id).sort());
    assert.ok(results.every((result) => result.state === 'ended' && result.status === 'sent'));
    assert.deepEqual(provider.callSizes, [3, 1, 1]);
  });

  test('is searched at its provider before it is sent again', async (t) => {
    const { accept, attach, deliverOne, provider, seen } = await make(t);
    const member = await accept();
    await attach(member.id, { 'a.txt': 'x' });
    provider.acts.push((email, call) => {
      provider.take(email, call);
      return { kind: 'unknown', detail: 'silence' };
    });
    assert.equal((await deliverOne(member)).state, 'again');
    assert.deepEqual(await deliverOne(member), sent(member.id));
    assert.equal(provider.took.length, 1);
    assert.equal(seen.length, 1);
  });
});

describe('files that cannot be read', () => {
  test('postpone the email without an attempt', async (t) => {
    let away = true;
    const { accept, attach, deliverOne, attempts, email } = await make(t, (store) => ({
      ...store,
      open: async (id) => {
        if (away) throw new FileStoreUnavailable(new Error('away'));
        return store.open(id);
      },
    }));
    const member = await accept();
    await attach(member.id, { 'a.txt': 'x' });
    const expected = { id: member.id, state: 'again', reason: 'Its attachments cannot be read now.', alone: true };
    assert.deepEqual(await deliverOne(member), expected);
    assert.deepEqual(await attempts(member.id), []);
    assert.equal((await email(member.id))['status'], 'queued');
    away = false;
    assert.equal((await deliverOne(member)).state, 'ended');
  });

  test('fail the email a day after it was due', async (t) => {
    const { store, accept, attach, deliverOne, attempts, email } = await make(t);
    for (const harm of ['missing', 'short']) {
      const member = await accept();
      const [id = ''] = await attach(member.id, { 'a.txt': 'four' });
      await store.remove([id]);
      if (harm === 'short') await store.put(id, Buffer.from('two'));
      assert.equal((await deliverOne(member)).state, 'again', harm);
      await pool.query(`UPDATE emails SET created_at = created_at - interval '25 hours' WHERE id = $1`, [member.id]);
      assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'failed' });
      assert.equal((await email(member.id))['error'], 'This email cannot be sent: its attachments are lost.');
      assert.deepEqual(await attempts(member.id), []);
    }
  });

  test('postpone an email that is days late while the volume of the store is not mounted', async (t) => {
    const folder = await temporaryFolder(t);
    const { store, accept, attach, deliverOne } = await make(t, undefined, join(folder, 'volume'));
    const member = await accept();
    await attach(member.id, { 'a.txt': 'x' });
    await pool.query(`UPDATE emails SET created_at = created_at - interval '3 days' WHERE id = $1`, [member.id]);
    await rename(join(folder, 'volume'), join(folder, 'unmounted'));
    // A worker checks the store when it starts, which creates the folder of unfinished files.
    await store.check();
    assert.equal((await deliverOne(member)).state, 'again');
    await rm(join(folder, 'volume'), { recursive: true });
    await rename(join(folder, 'unmounted'), join(folder, 'volume'));
    assert.deepEqual(await deliverOne(member), sent(member.id));
  });

  test('do not block other emails', async (t) => {
    const { acceptMany, attach, deliver, store } = await make(t);
    const members = await acceptMany(3);
    const [id = ''] = await attach(members[1]?.id ?? '', { 'a.txt': 'x' });
    await store.remove([id]);
    const results = await deliver(...members);
    assert.deepEqual(results.map(({ state }) => state).sort(), ['again', 'ended', 'ended']);
  });
});
