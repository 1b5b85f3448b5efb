import { access, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isFulfilled } from './command.ts';
import { withLock } from './lock.ts';

/** Returns the folder of downloaded and built servers, shared by all clones and homes of this user. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'sendwright');
}

/**
 * Creates the file or folder at `path` if it does not exist, atomically and in one process at a time.
 * @param make receives an empty folder and returns the path in it to keep
 * @param onWait called if another process is creating it
 */
export async function createOnce(
  path: string,
  make: (workspace: string) => Promise<string>,
  { signal, onWait }: { signal?: AbortSignal | undefined; onWait: () => void },
): Promise<void> {
  if (await exists(path)) return;
  const folder = dirname(path);
  const prefix = `${basename(path)}.making-`;
  await mkdir(folder, { recursive: true });
  await withLock(`${path}.lock`, onWait, signal, async () => {
    if (await exists(path)) return;
    // Remains of killed processes. No other process is creating the file, since this one holds the lock.
    for (const name of await readdir(folder)) {
      if (name.startsWith(prefix)) await rm(join(folder, name), { recursive: true, force: true });
    }
    const workspace = join(folder, prefix + String(process.pid));
    await mkdir(workspace);
    try {
      await rename(await make(workspace), path);
    } finally {
      await rm(workspace, { recursive: true, force: true });
    }
  });
}

export function exists(path: string): Promise<boolean> {
  return isFulfilled(access(path));
}
