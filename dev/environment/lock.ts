import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** Who holds a lock. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
}

export interface Lock {
  readonly release: () => Promise<void>;
}

const HEARTBEAT = 2_000;
/** A holder that was not heard of for this long is taken for dead, on this machine and on others that see the file. */
const STALE_AFTER = 20_000;
const POLL = 200;

/**
 * Takes a lock that is a file, or says who has it. The holder shows that it lives by touching the file; a lock whose
 * holder has died is taken over.
 * @param path its folder must exist
 */
export async function tryLock(path: string): Promise<Lock | Holder> {
  const own = JSON.stringify({ pid: process.pid, host: hostname(), at: Date.now() });
  for (;;) {
    try {
      await writeFile(path, own, { flag: 'wx', mode: 0o600 });
      return keep(path, own);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const found = await look(path);
    if (found === undefined) continue;
    if (found.alive) return found.holder;
    await remove(path, found.text);
  }
}

/**
 * Does `work` while holding the lock at `path`, waiting for it as long as it takes.
 * @param onWait told once when another process has it
 */
export async function withLock<T>(
  path: string,
  onWait: (holder: Holder) => void,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  let told = false;
  for (;;) {
    const lock = await tryLock(path);
    if ('release' in lock) {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (!told) onWait(lock);
    told = true;
    await sleep(POLL, undefined, { signal });
  }
}

function keep(path: string, own: string): Lock {
  const beating = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT).unref();
  return {
    async release() {
      clearInterval(beating);
      await remove(path, own);
    },
  };
}

/** What the file says now; undefined when it has gone meanwhile. */
async function look(path: string): Promise<{ text: string; holder: Holder; alive: boolean } | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    const heard = (await stat(path)).mtimeMs;
    const holder = parse(text);
    const gone = holder.host === hostname() && !exists(holder.pid);
    return { text, holder, alive: !gone && Date.now() - heard < STALE_AFTER };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** A file that was made and not yet written to has a holder that is about to say its name. */
function parse(text: string): Holder {
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return { pid: 0, host: '' };
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes the file if it still says `text`: between look and deed another process may have put its own there. */
async function remove(path: string, text: string): Promise<void> {
  const aside = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if ((await readFile(aside, 'utf8')) !== text) await link(aside, path).catch(() => undefined);
  await rm(aside);
}
