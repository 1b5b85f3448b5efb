import assert from 'node:assert/strict';
import { access, mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it, test } from 'node:test';
import { diskStore } from '../../../src/store/files/disk.ts';
import { FileStoreUnavailable } from '../../../src/store/files/file-store.ts';
import { openFileStore } from '../../../src/store/files/open.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { allIds, contentOf, newFileId, storeContract } from './store-contract.ts';

const folder = await temporaryFolder({ after });

describe('files on a disk', () => {
  storeContract(() => diskStore(join(folder, 'files')));

  it('are readable by their owner only', async () => {
    const store = diskStore(join(folder, 'private'));
    const id = newFileId();
    await store.put(id, Buffer.from('x'));
    assert.equal((await stat(join(folder, 'private', id.slice(-2), id))).mode & 0o777, 0o600);
    assert.equal((await stat(join(folder, 'private', id.slice(-2)))).mode & 0o777, 0o700);
  });

  it('are in folders by the random end of their id, without temporary files', async () => {
    const path = join(folder, 'fan');
    const store = diskStore(path);
    const ids = Array.from({ length: 40 }, () => newFileId());
    for (const id of ids) await store.put(id, Buffer.from('x'));
    assert.deepEqual(await readdir(join(path, 'unfinished')), []);
    const names = (await readdir(path)).filter((name) => name !== 'unfinished');
    assert.deepEqual(names.sort(), [...new Set(ids.map((id) => id.slice(-2)))].sort());
  });
});

test('temporary files of a killed writer are not listed, and are deleted after a day', async (t) => {
  const folder = await temporaryFolder(t);
  const store = diskStore(folder);
  await store.put(newFileId(), Buffer.from('x'));
  const old = join(folder, 'unfinished', `${newFileId()}.0123`);
  const young = join(folder, 'unfinished', `${newFileId()}.4567`);
  await Promise.all([writeFile(old, 'half'), writeFile(young, 'half')]);
  const yesterday = new Date(Date.now() - 25 * 3_600_000);
  await utimes(old, yesterday, yesterday);
  assert.equal((await allIds(store)).length, 1);
  await assert.rejects(access(old));
  await access(young);
});

test('other files in the folder are neither listed nor changed', async (t) => {
  const folder = await temporaryFolder(t);
  const store = diskStore(folder);
  assert.deepEqual(await allIds(diskStore(join(folder, 'missing'))), []);
  await mkdir(join(folder, 'aa'));
  await writeFile(join(folder, 'aa', 'README'), 'x');
  await writeFile(join(folder, '.gitkeep'), '');
  assert.deepEqual(await allIds(store), []);
  await access(join(folder, 'aa', 'README'));
});

test('throws FileStoreUnavailable when the disk cannot be written to', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'unfinished'), 'in the way');
  const store = diskStore(folder);
  await assert.rejects(store.put(newFileId(), Buffer.from('x')), FileStoreUnavailable);
  await assert.rejects(store.check(), FileStoreUnavailable);
});

test('a folder without any file so far is unavailable, and its first file makes others missing', async (t) => {
  const store = diskStore(await temporaryFolder(t));
  await assert.rejects(store.open(newFileId()), FileStoreUnavailable);
  await store.check();
  await assert.rejects(store.open(newFileId()), FileStoreUnavailable);
  const id = newFileId();
  await store.put(id, Buffer.from('x'));
  await store.remove([id]);
  assert.equal(await store.open(newFileId()), undefined);
});

test('a location is a folder, a file: URL or a bucket', async (t) => {
  const folder = await temporaryFolder(t);
  for (const location of [`file:${folder}`, `file://${folder}`]) {
    const store = await openFileStore(location);
    const id = newFileId();
    await store.put(id, Buffer.from(location));
    assert.equal(String(await contentOf(diskStore(folder), id)), location);
  }
  for (const location of ['', 'file:', 's3:', 's3://', 'ftp://bucket', 'attachments', '/attachments']) {
    await assert.rejects(openFileStore(location), location);
  }
});
