import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type Head, KEY, type Received } from './message.ts';
import { Segment } from './segment.ts';
import { fileTape, memoryTape } from './tape.ts';

/** How much is kept; what is older is dropped, a segment at a time. */
export interface Keep {
  readonly messages: number;
  readonly bytes: number;
}

/** What is dropped at once, as a part of what is kept. */
const SEGMENTS = 20;
const FILE_NAME = /^(\d{8})\.messages$/;

interface Numbered {
  readonly number: number;
  readonly segment: Segment;
}

/** A message that was found; its parts are read when they are asked for. */
export interface Found {
  /** Unix milliseconds. */
  readonly receivedAt: number;
  head(): Head;
  /** The JSON text of an InboxMessage. */
  message(): string;
}

/** Everything that the simulated providers accepted, in the order it came. */
export class Inbox {
  readonly #folder: string | null;
  readonly #keep: Keep;
  /** Oldest first; the last one is written to. */
  #segments: Numbered[] = [];

  /**
   * Reads what the folder holds, or makes it.
   * @param folder where the messages are kept; null keeps them in memory
   */
  constructor(folder: string | null, keep: Keep, log: Logger) {
    this.#folder = folder;
    this.#keep = keep;
    if (folder !== null) {
      mkdirSync(folder, { recursive: true });
      const numbers = readdirSync(folder).flatMap((name) => Number(FILE_NAME.exec(name)?.[1] ?? []));
      for (const number of numbers.sort((a, b) => a - b)) this.#open(number);
    }
    if (this.#segments.length === 0) this.#open(1);
    const damaged = this.#segments.reduce((sum, { segment }) => sum + segment.damaged, 0);
    if (damaged > 0) log.warn({ damaged }, 'inbox: left out messages that were not written to their end');
    this.#trim();
  }

  /** How many messages it holds. */
  get size(): number {
    return this.#segments.reduce((sum, { segment }) => sum + segment.messages, 0);
  }

  /** Keeps the messages: all of them, or it throws and keeps none. They survive the end of this process. */
  add(received: readonly Received[]): void {
    if (received.length === 0) return;
    const { number, segment } = this.#last();
    const full = segment.messages >= this.#keep.messages / SEGMENTS || segment.bytes >= this.#keep.bytes / SEGMENTS;
    if (full) this.#open(number + 1);
    this.#last().segment.add(received);
    this.#trim();
  }

  /** The messages that have all of these keys (see KEY), newest first. It may be read slowly: what goes meanwhile is left out. */
  *find(...keys: readonly string[]): Generator<Found> {
    for (const { segment } of this.#segments.toReversed()) {
      if (segment.isRemoved()) continue;
      for (const number of segment.find(keys)) {
        if (segment.isRemoved()) break;
        yield {
          receivedAt: segment.receivedAt(number),
          head: () => segment.head(number),
          message: () => segment.message(number),
        };
      }
    }
  }

  /** The message with this id, if it is still kept. */
  get(id: string): Found | undefined {
    const [found] = this.find(KEY.id(id));
    return found;
  }

  /** Forgets every message. */
  clear(): void {
    const { number } = this.#last();
    for (const { segment } of this.#segments) segment.remove();
    this.#segments = [];
    this.#open(number + 1);
  }

  close(): void {
    for (const { segment } of this.#segments) segment.close();
  }

  #last(): Numbered {
    return this.#segments.at(-1) as Numbered;
  }

  #open(number: number): void {
    const name = `${String(number).padStart(8, '0')}.messages`;
    const tape = this.#folder === null ? memoryTape() : fileTape(join(this.#folder, name));
    this.#segments.push({ number, segment: new Segment(tape) });
  }

  #trim(): void {
    const bytes = () => this.#segments.reduce((sum, { segment }) => sum + segment.bytes, 0);
    while (this.#segments.length > 1 && (this.size > this.#keep.messages || bytes() > this.#keep.bytes))
      this.#segments.shift()?.segment.remove();
  }
}
