import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { it } from 'node:test';
import { newId } from '../../../src/lib/ids.ts';
import type { FileKind, FileStore } from '../../../src/store/files/file-store.ts';

/** Every id of a kind that a store lists, over all pages. */
export async function allIds(store: FileStore, kind: FileKind = 'att'): Promise<string[]> {
  const ids: string[] = [];
  let from: string | null = null;
  do {
    const page = await store.list(kind, from);
    ids.push(...page.ids);
    from = page.next;
  } while (from !== null);
  return ids.sort();
}

/** The content of a file, or undefined. */
export async function contentOf(store: FileStore, id: string): Promise<Buffer | undefined> {
  const stream = await store.open(id);
  return stream && buffer(stream);
}

export function newFileId(): string {
  return newId('att');
}

/** The tests of every file store. */
export function storeContract(open: () => FileStore): void {
  it('returns the bytes of an empty, a small and a 30 MB file', async () => {
    const store = open();
    for (const content of [Buffer.alloc(0), Buffer.from([0, 255, 10, 13]), randomBytes(30 * 1_048_576)]) {
      const id = newFileId();
      await store.put(id, content);
      assert.ok((await contentOf(store, id))?.equals(content), `${content.length} bytes`);
      await store.remove([id]);
    }
  });

  it('returns undefined for an id that was never stored or is removed', async () => {
    const store = open();
    const id = newFileId();
    assert.equal(await store.open(id), undefined);
    await store.put(id, Buffer.from('x'));
    await store.remove([id, newFileId()]);
    assert.equal(await store.open(id), undefined);
    await store.remove([id]);
    await store.remove([]);
  });

  it('replaces a file under the same id', async () => {
    const store = open();
    const id = newFileId();
    await store.put(id, Buffer.from('one'));
    await store.put(id, Buffer.from('two'));
    assert.equal(String(await contentOf(store, id)), 'two');
    await store.remove([id]);
  });

  it('lists every id once, over several pages', async () => {
    const store = open();
    await store.check();
    assert.deepEqual(await allIds(store), []);
    const ids = Array.from({ length: 60 }, newFileId);
    await Promise.all(ids.map((id) => store.put(id, Buffer.from(id))));
    assert.deepEqual(await allIds(store), ids.sort());
    await store.remove(ids);
    assert.deepEqual(await allIds(store), []);
  });

  it('lists the files of one kind only', async () => {
    const store = open();
    const [attachment, erasure] = [newFileId(), `era_${newFileId().slice(4)}`];
    await Promise.all([attachment, erasure].map((id) => store.put(id, Buffer.from(id))));
    assert.deepEqual(await allIds(store), [attachment]);
    assert.deepEqual(await allIds(store, 'era'), [erasure]);
    await store.remove([attachment, erasure]);
    assert.deepEqual(await allIds(store, 'era'), []);
  });

  it('accepts ids of files only', async () => {
    const store = open();
    for (const id of [
      '',
      'x',
      '../x',
      `att_${'a'.repeat(25)}/`,
      newId('em', 1),
      `${newFileId()}\n`,
      newFileId().toUpperCase(),
    ]) {
      await assert.rejects(store.put(id, Buffer.from('x')), JSON.stringify(id));
      await assert.rejects(store.open(id), JSON.stringify(id));
      await assert.rejects(store.remove([id]), JSON.stringify(id));
    }
  });
}
