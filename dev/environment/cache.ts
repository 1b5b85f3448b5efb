import { access, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { withLock } from './lock.ts';

/** Where downloaded and built servers are kept for all clones and homes of this user. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'sendwright');
}

/**
 * The file or folder at `path`, made if it is not there yet. It appears whole or not at all, and is made once, however
 * many processes want it at the same time: the others wait.
 * @param make gets an empty folder to work in, and returns the path in there of what is to be kept
 * @param onWait told when another process is making it
 */
export async function cached(
  path: string,
  make: (workspace: string) => Promise<string>,
  { signal, onWait }: { signal?: AbortSignal | undefined; onWait: () => void },
): Promise<void> {
  if (await isThere(path)) return;
  const folder = dirname(path);
  const prefix = `${basename(path)}.making-`;
  await mkdir(folder, { recursive: true });
  await withLock(`${path}.lock`, onWait, signal, async () => {
    if (await isThere(path)) return;
    // Left by makers that were killed: none lives, since we hold the lock.
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

export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
