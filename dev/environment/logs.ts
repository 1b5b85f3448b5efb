import { copyFile, readdir, rename, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';

const MAX_LOG_BYTES = 64 * 1_048_576;
const CHECK_INTERVAL_MS = 10_000;

/** Returns the path of a part's log, and renames the log of the last start to `.1`. */
export async function rotateLog(folder: string, part: string): Promise<string> {
  const path = join(folder, `${part}.log`);
  await rename(path, `${path}.1`).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  });
  return path;
}

/**
 * Copies logs of more than 64 MiB to `.1` and truncates them. Writers have their log open for appending; lines printed
 * between copying and truncating may be lost.
 * @returns a function that ends the checks
 */
export function trimLogs(folder: string, maxBytes = MAX_LOG_BYTES, intervalMs = CHECK_INTERVAL_MS): () => void {
  // One run at a time: a log that one run truncates while another copies it would be copied forever.
  let trimming: Promise<void> | undefined;
  const timer = setInterval(() => {
    trimming ??= trim(folder, maxBytes)
      .catch(() => undefined)
      .finally(() => (trimming = undefined));
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

async function trim(folder: string, maxBytes: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!name.endsWith('.log') || (await stat(path)).size <= maxBytes) continue;
    await copyFile(path, `${path}.1`);
    await truncate(path);
  }
}
