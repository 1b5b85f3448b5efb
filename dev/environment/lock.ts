import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, startTime } from './processes.ts';

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Distinguishes it from a later process with its pid. */
  readonly startTime?: string | undefined;
}

export interface Lock {
  readonly release: () => Promise<void>;
}

const HEARTBEAT_MS = 2_000;
/**
 * A lock whose holder has no heartbeat for this time is taken over, also from another machine. A process of this machine keeps it
 * as long as it exists: it may be suspended.
 */
const STALE_AFTER_MS = 20_000;
const POLL_MS = 200;

/**
 * Takes a lock file, or returns its holder. The holder touches the file as a heartbeat; the lock of a dead holder is taken
 * over.
 * @param path its folder must exist
 */
export async function tryLock(path: string): Promise<Lock | Holder> {
  const own = JSON.stringify({ ...(await ownProcess()), at: Date.now() });
  for (;;) {
    try {
      await writeFile(path, own, { flag: 'wx', mode: 0o600 });
      return holdLock(path, own);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const found = await readLock(path);
    if (found === undefined) continue;
    if (found.alive) return found.holder;
    await removeIfOwn(path, found.text);
  }
}

/**
 * Runs `work` while it holds the lock at `path`. Waits for the lock without a timeout.
 * @param onWait called once if another process holds the lock
 */
export async function withLock<T>(
  path: string,
  onWait: (holder: Holder) => void,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  let hasWaited = false;
  for (;;) {
    const lock = await tryLock(path);
    if ('release' in lock) {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (!hasWaited) onWait(lock);
    hasWaited = true;
    await sleep(POLL_MS, undefined, { signal });
  }
}

function holdLock(path: string, own: string): Lock {
  const beating = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT_MS).unref();
  return {
    async release() {
      clearInterval(beating);
      await removeIfOwn(path, own);
    },
  };
}

/** Returns undefined if the file does not exist. */
async function readLock(path: string): Promise<{ text: string; holder: Holder; alive: boolean } | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    const heartbeatMs = (await stat(path)).mtimeMs;
    const holder = parse(text);
    const isFresh = Date.now() - heartbeatMs < STALE_AFTER_MS;
    const alive = holder.host === hostname() ? isAlive(holder.pid) && (isFresh || (await isSame(holder))) : isFresh;
    return { text, holder, alive };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Parses a lock file, which may be empty until its holder has written to it. */
function parse(text: string): Holder {
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return { pid: 0, host: '' };
  }
}

async function ownProcess(): Promise<Holder> {
  return { pid: process.pid, host: hostname(), startTime: await startTime(process.pid) };
}

/** Returns true if the process with the holder's pid is the holder. */
async function isSame(holder: Holder): Promise<boolean> {
  return holder.startTime !== undefined && holder.startTime === (await startTime(holder.pid));
}

/** Removes the file if it still contains `text`: another process may have replaced it. */
async function removeIfOwn(path: string, text: string): Promise<void> {
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
