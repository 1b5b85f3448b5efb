import { copyFile, readdir, rename, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';

const LARGEST = 64 * 1_048_576;
const LOOK_EVERY = 10_000;

/** The file in `folder` for what a part prints, empty; what the last start printed is kept beside it, as `.1`. */
export async function freshLog(folder: string, part: string): Promise<string> {
  const path = join(folder, `${part}.log`);
  await rename(path, `${path}.1`).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  });
  return path;
}

/**
 * Keeps the logs from filling the disk, however long the parts run: one that has grown past 64 MiB becomes the `.1` and
 * begins anew. Its writer has it open for appending and goes on; lines printed in between may be lost.
 * @returns a function that ends it
 */
export function trimLogs(folder: string, largest = LARGEST, every = LOOK_EVERY): () => void {
  const timer = setInterval(() => {
    trim(folder, largest).catch(() => undefined);
  }, every).unref();
  return () => clearInterval(timer);
}

async function trim(folder: string, largest: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!name.endsWith('.log') || (await stat(path)).size <= largest) continue;
    await copyFile(path, `${path}.1`);
    await truncate(path);
  }
}
