import { readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** What somebody saw, one entry after the other, on disk before he goes on. */
export interface Ledger<Entry> {
  /** Resolves when the entry is on disk. Entries that come together share a flush. */
  readonly write: (entry: Entry) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens a ledger, one entry of JSON a line, and goes on at its end. */
export async function openLedger<Entry>(path: string): Promise<Ledger<Entry>> {
  const file = await open(path, 'a');
  let waiting: string[] = [];
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return {
    write(entry) {
      waiting.push(`${JSON.stringify(entry)}\n`);
      next ??= last = last.then(() => {
        const lines = waiting.join('');
        waiting = [];
        next = undefined;
        return flush(file, lines);
      });
      return next;
    },
    async close() {
      await last;
      await file.close();
    },
  };
}

async function flush(file: FileHandle, lines: string): Promise<void> {
  await file.appendFile(lines);
  await file.datasync();
}

/** All entries of a ledger, as the disk has them. */
export function readLedger<Entry>(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Entry);
}
