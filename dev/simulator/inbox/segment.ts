import { type Head, keysOf, type Received } from './message.ts';
import type { Tape } from './tape.ts';

const TAB = 0x09;
const NEWLINE = 0x0a;

/**
 * A stretch of the inbox: one tape and the index of what is on it. A message is one line, its head as JSON, a tab, the
 * message as JSON (neither can hold a raw tab or newline). Memory holds for each message four numbers and its keys.
 */
export class Segment {
  /** Lines that could not be read at the start, or were not written to their end. */
  readonly damaged: number;
  #removed = false;
  readonly #tape: Tape;
  readonly #offsets: number[] = [];
  readonly #headLengths: number[] = [];
  readonly #lengths: number[] = [];
  readonly #times: number[] = [];
  /** Key → the messages that have it, oldest first; a bare number while there is one, which most keys have. */
  readonly #index = new Map<string, number | number[]>();

  constructor(tape: Tape) {
    this.#tape = tape;
    this.damaged = this.#load();
  }

  get messages(): number {
    return this.#offsets.length;
  }

  get bytes(): number {
    return this.#tape.size;
  }

  isRemoved(): boolean {
    return this.#removed;
  }

  /** Writes the messages, then makes them visible. Throws when the tape cannot take all of them. */
  add(received: readonly Received[]): void {
    const heads = received.map(({ head }) => JSON.stringify(head));
    const lines = received.map(({ message }, i) => Buffer.from(`${heads[i] as string}\t${JSON.stringify(message)}\n`));
    let offset = this.#tape.size;
    this.#tape.append(lines.length === 1 ? (lines[0] as Buffer) : Buffer.concat(lines));
    for (const [i, line] of lines.entries()) {
      this.#enter(heads[i] as string, offset, line.indexOf(TAB), line.length);
      offset += line.length;
    }
  }

  /** The numbers of the messages that have all of these keys, newest first. */
  find(keys: readonly string[]): number[] {
    const lists = keys.map((key) => this.#index.get(key)).map((list) => (typeof list === 'number' ? [list] : list));
    const [shortest, ...others] = lists.toSorted((a, b) => (a?.length ?? 0) - (b?.length ?? 0));
    if (keys.length === 0) return Array.from(this.#offsets, (_, i) => this.messages - 1 - i);
    return (shortest ?? []).filter((n) => others.every((list) => list && contains(list, n))).reverse();
  }

  /** When a message came, in Unix milliseconds. */
  receivedAt(number: number): number {
    return this.#times[number] as number;
  }

  head(number: number): Head {
    const bytes = this.#tape.read(this.#offsets[number] as number, this.#headLengths[number] as number);
    return JSON.parse(bytes.toString()) as Head;
  }

  /** The message as the JSON text of an InboxMessage. */
  message(number: number): string {
    const skip = (this.#headLengths[number] as number) + 1;
    const length = (this.#lengths[number] as number) - skip - 1;
    return this.#tape.read((this.#offsets[number] as number) + skip, length).toString();
  }

  close(): void {
    this.#tape.close();
  }

  remove(): void {
    this.#removed = true;
    this.#tape.remove();
  }

  /** Reads the tape. The last line lacks its end when the process was killed in the middle of it: it is cut off. */
  #load(): number {
    const bytes = this.#tape.read(0, this.#tape.size);
    let damaged = 0;
    let start = 0;
    for (let end; (end = bytes.indexOf(NEWLINE, start)) >= 0; start = end + 1) {
      const headLength = bytes.subarray(start, end).indexOf(TAB);
      try {
        this.#enter(bytes.toString('utf8', start, start + headLength), start, headLength, end + 1 - start);
      } catch {
        damaged++;
      }
    }
    if (start === bytes.length) return damaged;
    this.#tape.truncate(start);
    return damaged + 1;
  }

  /** Takes the head as text, so that what is indexed now is what a restart would index, and no caller's text is kept. */
  #enter(headText: string, offset: number, headLength: number, length: number): void {
    const head = JSON.parse(headText) as Head;
    const keys = keysOf(head);
    const number = this.#offsets.push(offset) - 1;
    this.#headLengths.push(headLength);
    this.#lengths.push(length);
    this.#times.push(head.received_at);
    for (const key of keys) {
      const list = this.#index.get(key);
      if (list === undefined) this.#index.set(key, number);
      else if (typeof list === 'number') this.#index.set(key, [list, number]);
      else list.push(number);
    }
  }
}

/** Whether an ascending list holds `n`, by halving. */
function contains(list: readonly number[], n: number): boolean {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as number) < n) low = middle + 1;
    else high = middle;
  }
  return list[low] === n;
}
