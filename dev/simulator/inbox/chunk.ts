import { closeSync, ftruncateSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs';
import { type Head, keysOf, type Received } from './message.ts';

const TAB = 0x09;
const NEWLINE = 0x0a;

/** The position of a message in its chunk, in bytes. */
export interface Entry {
  /** Unix milliseconds. */
  readonly receivedAt: number;
  readonly offset: number;
  readonly headLength: number;
  readonly length: number;
  /** The bytes of a message in memory; undefined for a message on disk. */
  readonly line: Buffer | undefined;
}

/**
 * A file of messages and its index. A message is one line: its head as JSON, a tab, the message as JSON (neither contains a
 * raw tab or newline). Calls are synchronous: a write reaches the page cache, which survives a killed process, before the
 * provider answers.
 */
export class Chunk {
  /** Oldest first. */
  readonly entries: Entry[] = [];
  /** The number of lines that could not be read, or were written only partly. */
  damaged = 0;
  sizeBytes = 0;
  isRemoved = false;
  readonly #path: string | null;
  readonly #file: number | undefined;
  readonly #index = new Map<string, Entry[]>();

  /** @param path null keeps the messages in memory */
  constructor(path: string | null) {
    this.#path = path;
    if (path === null) return;
    this.#file = openSync(path, 'a+');
    this.#load(readFileSync(path), this.#file);
  }

  /** Writes all of the messages, or throws without writing any. */
  add(received: readonly Received[]): void {
    const lines = received.map(({ head, message }) =>
      Buffer.from(`${JSON.stringify(head)}\t${JSON.stringify(message)}\n`),
    );
    if (this.#file !== undefined) this.#append(this.#file, Buffer.concat(lines));
    for (const line of lines) {
      this.#enter(line, this.sizeBytes);
      this.sizeBytes += line.length;
    }
  }

  /** Returns the messages that have all of these keys, latest first. */
  find(keys: readonly string[]): Entry[] {
    if (keys.length === 0) return this.entries.toReversed();
    const lists = keys.map((key) => this.#index.get(key) ?? []).sort((a, b) => a.length - b.length);
    const [shortest = [], ...others] = lists;
    if (shortest.length === 0) return [];
    const sets = others.map((list) => new Set(list));
    return shortest.filter((entry) => sets.every((set) => set.has(entry))).reverse();
  }

  head({ offset, headLength, line }: Entry): Head {
    return JSON.parse(this.#read(offset, line?.subarray(0, headLength) ?? headLength)) as Head;
  }

  /** Returns the JSON text of an InboxMessage or InboxChat. */
  message({ offset, headLength, length, line }: Entry): string {
    return this.#read(offset + headLength + 1, line?.subarray(headLength + 1, -1) ?? length - headLength - 2);
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }

  remove(): void {
    this.isRemoved = true;
    this.close();
    if (this.#path !== null) rmSync(this.#path, { force: true });
  }

  #append(file: number, bytes: Buffer): void {
    try {
      for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
    } catch (error) {
      ftruncateSync(file, this.sizeBytes);
      throw error;
    }
  }

  #read(offset: number, source: Buffer | number): string {
    if (typeof source !== 'number') return source.toString();
    const bytes = Buffer.allocUnsafe(source);
    const read = readSync(this.#file as number, bytes, 0, source, offset);
    if (read < source) throw new RangeError(`The file ends before byte ${offset + source}.`);
    return bytes.toString();
  }

  /** Indexes the file. Truncates the last line if it is incomplete, because the process was killed while writing. */
  #load(bytes: Buffer, file: number): void {
    for (let end; (end = bytes.indexOf(NEWLINE, this.sizeBytes)) >= 0; this.sizeBytes = end + 1) {
      try {
        this.#enter(bytes.subarray(this.sizeBytes, end + 1), this.sizeBytes);
      } catch {
        this.damaged++;
      }
    }
    if (this.sizeBytes === bytes.length) return;
    this.damaged++;
    ftruncateSync(file, this.sizeBytes);
  }

  /** Indexes a line by parsing its head, so that the index is the same after a restart. */
  #enter(line: Buffer, offset: number): void {
    const headLength = line.indexOf(TAB);
    const head = JSON.parse(line.toString('utf8', 0, headLength)) as Head;
    const keys = keysOf(head);
    const kept = this.#file === undefined ? line : undefined;
    const entry = { receivedAt: head.received_at, offset, headLength, length: line.length, line: kept };
    this.entries.push(entry);
    for (const key of keys) {
      const list = this.#index.get(key);
      if (list) list.push(entry);
      else this.#index.set(key, [entry]);
    }
  }
}
