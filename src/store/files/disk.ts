import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FilesNotRemoved, type FileKind, type FileStore, guarded, isOfKind, requireFileId } from './file-store.ts';

/** The folder of files that are being written. */
const UNFINISHED = 'unfinished';
/** After this time no process can still be writing an unfinished file. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

/**
 * Stores files on a disk that all processes share. The last two letters of an id determine its folder, so that no folder grows
 * large.
 */
export function diskStore(folder: string): FileStore {
  const folderOf = (id: string) => join(folder, id.slice(-2));
  const pathOf = (id: string) => join(folderOf(id), id);

  async function put(id: string, content: Buffer): Promise<void> {
    requireFileId(id);
    const unfinished = join(folder, UNFINISHED, `${id}.${randomBytes(6).toString('hex')}`);
    await Promise.all([makeFolder(join(folder, UNFINISHED)), makeFolder(folderOf(id))]);
    try {
      await write(unfinished, content);
      await rename(unfinished, pathOf(id));
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      throw error;
    }
    await sync(folderOf(id));
  }

  async function foldersOfFiles(): Promise<string[]> {
    return (await namesIn(folder)).filter((name) => name.length === 2);
  }

  async function openIfThere(id: string) {
    requireFileId(id);
    try {
      const file = await open(pathOf(id));
      return file.createReadStream();
    } catch (error) {
      // Folders remain when their files are deleted. Without any, this is the empty folder of a volume that is not mounted.
      if (!isMissing(error) || (await foldersOfFiles()).length === 0) throw error;
      return undefined;
    }
  }

  async function list(kind: FileKind, from: string | null) {
    if (from === null) await removeAbandoned(join(folder, UNFINISHED));
    const folders = (await foldersOfFiles()).sort();
    const index = from === null ? 0 : folders.findIndex((name) => name >= from);
    const name = folders[index];
    if (name === undefined) return { ids: [], next: null };
    return {
      ids: (await namesIn(join(folder, name))).filter((id) => isOfKind(id, kind)),
      next: folders[index + 1] ?? null,
    };
  }

  return guarded({
    put,
    list,
    open: openIfThere,
    async remove(ids) {
      ids.forEach(requireFileId);
      const failures = new Map<string, unknown>();
      const removals = ids.map((id) =>
        rm(pathOf(id), { force: true }).catch((error: unknown) => failures.set(id, error)),
      );
      await Promise.all(removals);
      if (failures.size > 0) throw new FilesNotRemoved([...failures.keys()], failures.values().next().value);
    },
    async check() {
      const probe = join(folder, UNFINISHED, `probe.${randomBytes(6).toString('hex')}`);
      await makeFolder(join(folder, UNFINISHED));
      await write(probe, Buffer.from('probe'));
      await rm(probe);
    },
  });
}

/** Creates a folder if it is missing, so that its name survives a crash. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let created = path; ; created = dirname(created)) {
    await sync(dirname(created));
    if (created === first) return;
  }
}

async function write(path: string, content: Buffer): Promise<void> {
  await writeFile(path, content, { flag: 'wx', mode: 0o600, flush: true });
}

/** Flushes a folder, so that a new name in it survives a crash, as the contents of the file do. */
async function sync(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes unfinished files of killed processes. */
async function removeAbandoned(folder: string): Promise<void> {
  const before = Date.now() - ABANDONED_AFTER_MS;
  for (const name of await namesIn(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found && found.mtimeMs < before) await rm(path, { force: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
