import assert from 'node:assert/strict';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type FileStore, FileStoreUnavailable } from '../../../src/store/files/file-store.ts';
import { openFileStore } from '../../../src/store/files/open.ts';
import { answering, httpServer } from '../../providers/servers.ts';
import { startS3Server, type S3Server } from '../../support/s3-server.ts';
import { allIds, contentOf, newFileId, storeContract } from './store-contract.ts';

describe('files in S3', () => {
  let folder: string;
  let server: S3Server;
  let store: FileStore;
  const at = (path: string) => openFileStore(`s3://${server.bucket}/${path}?endpoint=${server.endpoint}`);

  before(async () => {
    folder = await mkdtemp(join(await realpath(tmpdir()), 'sendwright-folder-'));
    server = await startS3Server(folder);
    process.env['AWS_ACCESS_KEY_ID'] = server.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = server.secretAccessKey;
    store = await at('a/prefix');
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  storeContract(() => store);

  it('are separate by prefix', async () => {
    const id = newFileId();
    await store.put(id, Buffer.from('x'));
    assert.deepEqual(await readdir(join(folder, server.bucket, 'a/prefix')), [id]);
    const other = await at('another/');
    assert.equal(await other.open(id), undefined);
    const bare = await at('');
    await bare.put(id, Buffer.from('y'));
    assert.equal(String(await contentOf(store, id)), 'x');
    await Promise.all([bare.remove([id]), store.remove([id])]);
  });

  it('are listed and removed beyond a thousand', async () => {
    const ids = Array.from({ length: 1_010 }, newFileId);
    for (let from = 0; from < ids.length; from += 50) {
      await Promise.all(ids.slice(from, from + 50).map((id) => store.put(id, Buffer.from('x'))));
    }
    assert.deepEqual(await allIds(store), ids.sort());
    await store.remove(ids);
    assert.deepEqual(await allIds(store), []);
  });

  /** A store whose server cannot remove one file. @param key the XML element with its key */
  async function refusing(t: TestContext, key: string): Promise<FileStore> {
    const body = `<DeleteResult><Error>${key}<Code>AccessDenied</Code></Error></DeleteResult>`;
    const endpoint = await httpServer(t, answering({ body, headers: { 'content-type': 'application/xml' } }));
    return openFileStore(`s3://bucket/my%20files?endpoint=${endpoint}`);
  }

  it('are reported if they cannot be removed', async (t) => {
    const ids = [newFileId(), newFileId()];
    const store = await refusing(t, `<Key>my files/${ids[1]}</Key>`);
    await assert.rejects(store.remove(ids), { name: 'FilesNotRemoved', ids: [ids[1]] });
  });

  it('do not count as removed if the server does not name the file that it cannot remove', async (t) => {
    const ids = [newFileId(), newFileId()];
    for (const key of ['', `<Key>my%20files/${ids[1]}</Key>`]) {
      const store = await refusing(t, key);
      await assert.rejects(store.remove(ids), { name: 'FileStoreUnavailable' });
    }
  });

  it('throw FileStoreUnavailable for a missing bucket or an unreachable server', async () => {
    const id = newFileId();
    const missing = await openFileStore(`s3://no-such-bucket?endpoint=${server.endpoint}`);
    await assert.rejects(missing.check(), FileStoreUnavailable);
    await assert.rejects(missing.put(id, Buffer.from('x')), FileStoreUnavailable);
    await server.stop();
    await assert.rejects(store.put(id, Buffer.from('x')), FileStoreUnavailable);
    await assert.rejects(store.open(id), FileStoreUnavailable);
  });
});
