import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { Chunk } from './chunk.ts';
import { type Head, KEY, type Received } from './message.ts';

/** Limits of the inbox. If they are exceeded, the oldest chunk is removed. */
export interface InboxLimits {
  readonly messages: number;
  readonly bytes: number;
}

/** Number of full chunks within the limits. */
const FULL_CHUNKS = 20;
const FILE_NAME = /^(\d{8})\.messages$/;

/** A message whose parts are read on request. */
export interface StoredMessage {
  /** Unix milliseconds. */
  readonly receivedAt: number;
  head(): Head;
  /** The JSON text of an InboxMessage or InboxChat. */
  message(): string;
}

/** All messages that the simulated providers accepted, in order of arrival. */
export class Inbox {
  readonly #folder: string | null;
  readonly #keep: InboxLimits;
  /** Oldest first; new messages go to the last one. */
  #chunks: Chunk[] = [];
  #lastNumber = 0;

  /** @param folder the folder of the messages; null stores them in memory */
  constructor(folder: string | null, keep: InboxLimits, log: Logger) {
    this.#folder = folder;
    this.#keep = keep;
    if (folder !== null) {
      // Its emails may hold links of password resets.
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const numbers = readdirSync(folder).flatMap((name) => Number(FILE_NAME.exec(name)?.[1] ?? []));
      for (const number of numbers.sort((a, b) => a - b)) this.#open(number);
    }
    if (this.#chunks.length === 0) this.#open(1);
    const damaged = this.#sum((chunk) => chunk.damaged);
    if (damaged > 0) log.warn({ damaged }, 'inbox: left out messages that were not written to their end');
    this.#trim();
  }

  /** The number of messages. */
  get size(): number {
    return this.#sum((chunk) => chunk.entries.length);
  }

  /** Stores all of the messages, or throws without storing any. They survive the end of this process. */
  add(received: readonly Received[]): void {
    if (received.length === 0) return;
    const { entries, sizeBytes } = this.#chunks.at(-1) as Chunk;
    const isFull = entries.length >= this.#keep.messages / FULL_CHUNKS || sizeBytes >= this.#keep.bytes / FULL_CHUNKS;
    if (isFull) this.#open(this.#lastNumber + 1);
    this.#chunks.at(-1)?.add(received);
    this.#trim();
  }

  /** Finds the messages that have all of these keys (see KEY), latest first. Skips those removed during the iteration. */
  *find(...keys: readonly string[]): Generator<StoredMessage> {
    for (const chunk of this.#chunks.toReversed()) {
      for (const entry of chunk.find(keys)) {
        if (chunk.isRemoved) break;
        yield {
          receivedAt: entry.receivedAt,
          head: () => chunk.head(entry),
          message: () => chunk.message(entry),
        };
      }
    }
  }

  get(id: string): StoredMessage | undefined {
    const [found] = this.find(KEY.id(id));
    return found;
  }

  clear(): void {
    for (const chunk of this.#chunks) chunk.remove();
    this.#chunks = [];
    this.#open(this.#lastNumber + 1);
  }

  close(): void {
    for (const chunk of this.#chunks) chunk.close();
  }

  #open(number: number): void {
    const name = `${String(number).padStart(8, '0')}.messages`;
    this.#chunks.push(new Chunk(this.#folder === null ? null : join(this.#folder, name)));
    this.#lastNumber = number;
  }

  #trim(): void {
    const isOver = (): boolean =>
      this.size > this.#keep.messages || this.#sum((chunk) => chunk.sizeBytes) > this.#keep.bytes;
    while (this.#chunks.length > 1 && isOver()) this.#chunks.shift()?.remove();
  }

  #sum(countOf: (chunk: Chunk) => number): number {
    return this.#chunks.reduce((sum, chunk) => sum + countOf(chunk), 0);
  }
}
