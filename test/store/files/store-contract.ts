import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { it } from 'node:test';
import { newId } from '../../../src/domain/ids.ts';
import type { FileStore } from '../../../src/store/files/file-store.ts';

/** Every id that a store lists, page after page. */
export async function allIds(store: FileStore): Promise<string[]> {
  const ids: string[] = [];
  let from: string | null = null;
  do {
    const page = await store.list(from);
    ids.push(...page.ids);
    from = page.next;
  } while (from !== null);
  return ids.sort();
}

/** What a store holds under an id; undefined when there is nothing. */
export async function contentOf(store: FileStore, id: string): Promise<Buffer | undefined> {
  const stream = await store.open(id);
  return stream && Buffer.concat(await stream.toArray());
}

export function newFileId(): string {
  return newId('att', Date.now());
}

/** What every file store promises. */
export function storeContract(open: () => FileStore): void {
  it('gives back every byte, of nothing, of a little and of 30 MB', async () => {
    const store = open();
    for (const content of [Buffer.alloc(0), Buffer.from([0, 255, 10, 13]), randomBytes(30 * 1_048_576)]) {
      const id = newFileId();
      await store.put(id, content);
      assert.ok((await contentOf(store, id))?.equals(content), `${content.length} bytes`);
      await store.remove([id]);
    }
  });

  it('has nothing under an id that was never put, or was removed', async () => {
    const store = open();
    const id = newFileId();
    assert.equal(await store.open(id), undefined);
    await store.put(id, Buffer.from('x'));
    await store.remove([id, newFileId()]);
    assert.equal(await store.open(id), undefined);
    await store.remove([id]);
    await store.remove([]);
  });

  it('takes a file again under the id it has', async () => {
    const store = open();
    const id = newFileId();
    await store.put(id, Buffer.from('one'));
    await store.put(id, Buffer.from('two'));
    assert.equal(String(await contentOf(store, id)), 'two');
    await store.remove([id]);
  });

  it('lists every id once, over as many pages as it takes', async () => {
    const store = open();
    assert.deepEqual(await allIds(store), []);
    const ids = Array.from({ length: 60 }, newFileId);
    await Promise.all(ids.map((id) => store.put(id, Buffer.from(id))));
    assert.deepEqual(await allIds(store), ids.sort());
    await store.remove(ids);
    assert.deepEqual(await allIds(store), []);
  });

  it('takes no name but the id of an attachment', async () => {
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

  it('can be used', async () => {
    await open().check();
    assert.deepEqual(await allIds(open()), []);
  });
}
