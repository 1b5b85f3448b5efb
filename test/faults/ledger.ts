import { readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A record of entries that are on disk before their writer continues. */
export interface Ledger<Entry> {
  /** Resolves when the entry is on disk. Concurrent entries share a flush. */
  readonly write: (entry: Entry) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens a ledger, one line of JSON per entry, and appends to it. */
export async function openLedger<Entry>(path: string): Promise<Ledger<Entry>> {
  const file = await open(path, 'a');
  let pending: string[] = [];
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return {
    write(entry) {
      pending.push(`${JSON.stringify(entry)}\n`);
      next ??= last = last.then(() => {
        const lines = pending.join('');
        pending = [];
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

/** All entries of a ledger on disk. */
export function readLedger<Entry>(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Entry);
}
