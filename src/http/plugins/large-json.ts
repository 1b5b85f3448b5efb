import { isAscii, isUtf8 } from 'node:buffer';
import { REPEATED_HEADER } from '../../domain/rules.ts';

/** The maximum number of items of an array that is built; no valid request exceeds it. */
const MAX_ITEMS = 10_000;
/** The maximum number of keys of an object that is built; no valid request exceeds it. */
const MAX_KEYS = 1_000;
/** The maximum number of values in a body. It exceeds that of 10,000 valid emails. */
const MAX_VALUES = 3_000_000;
/** The maximum length of a path in an error message. */
const MAX_PATH_PARTS = 20;

/** The message of the SyntaxError for invalid UTF-8. */
export const NOT_UTF8 = 'not UTF-8';

/** The error for keys that would change an object's prototype. */
export const PROTOTYPE_KEYS = 'the request body must not contain a key __proto__, or prototype in constructor';

/** A parsed value, or the error for valid JSON that exceeds a limit. */
export type LargeJson = { readonly value: unknown } | RefusedJson;
interface RefusedJson {
  /** The dotted path of the invalid part; undefined for the whole body. */
  readonly path: string | undefined;
  readonly problem: string;
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
const WHITE_SPACE = [0x20, 0x09, 0x0a, 0x0d];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Marks the bytes that end a number or a word. */
const TOKEN_ENDS = new Uint8Array(256);
for (const byte of [...WHITE_SPACE, QUOTE, COMMA, COLON, ARRAY, ARRAY_END, OBJECT, OBJECT_END]) TOKEN_ENDS[byte] = 1;

/** The token that may follow next (RFC 8259 §2–5). */
type Next = 'value' | 'first item' | 'key' | 'first key' | 'colon' | 'comma' | 'end';

/**
 * Parses large JSON incrementally, with the same results as JSON.parse. It does not hold the whole text, and other requests can
 * run between pieces. Values beyond the limits are parsed but not built, because only complete text is valid JSON: of 40 MB of
 * `{}` only the first ones are built. It tokenizes the structure and delegates strings, numbers and words to JSON.parse. `feed`
 * and `end` throw SyntaxError for text that is not JSON in UTF-8.
 */
export class LargeJsonReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** The number of bytes before `#bytes`. */
  #bytesBefore = 0;
  #encoding: 'latin1' | 'utf8' = 'utf8';
  #isFirst = true;
  #next: Next = 'value';
  /** The opening bytes of the enclosing arrays and objects. */
  #open = new Uint8Array(64);
  #depth = 0;
  /** The start of a string that continues in the next piece. */
  #text: string | undefined;
  /** The start of a number or word that continues in the next piece. */
  #word: string | undefined;

  /** The enclosing arrays and objects. `#keys` and `#sizes` contain the latest key and the number of keys of each. */
  #built: (unknown[] | Record<string, unknown>)[] = [];
  #keys: string[] = [];
  #sizes: number[] = [];
  #values = 0;
  #whole: unknown;
  #refused: RefusedJson | undefined;

  /** Parses the next piece of the text. */
  feed(piece: Buffer): void {
    const rest = this.#bytes.subarray(this.#at);
    this.#bytesBefore += this.#at;
    const bytes = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    const text = bytes.subarray(0, endOfCharacters(bytes));
    if (!isUtf8(text)) throw new SyntaxError(NOT_UTF8);
    this.#encoding = isAscii(text) ? 'latin1' : 'utf8';
    this.#bytes = text;
    this.#at = 0;
    if (this.#isFirst && text.length > 0) {
      this.#isFirst = false;
      if (BYTE_ORDER_MARK.every((byte, index) => text[index] === byte)) this.#at = BYTE_ORDER_MARK.length;
    }
    while (this.#at < text.length) {
      if (this.#text === undefined) this.#token();
      else if (!this.#readString()) break;
    }
    // Keep unread bytes: part of a character or of an escape.
    this.#bytes = bytes;
  }

  /** The number of bytes read. After a SyntaxError it is the position of the error or just before it. */
  get offset(): number {
    return this.#bytesBefore + this.#at;
  }

  /** Ends the text. @returns the parsed value */
  end(): LargeJson {
    if (this.#word !== undefined) this.#endWord(this.#word);
    const rest = this.#bytes.subarray(this.#at);
    if (!isUtf8(rest)) throw new SyntaxError(NOT_UTF8);
    if (rest.length > 0 || this.#next !== 'end') throw unexpected();
    return this.#refused ?? { value: this.#whole };
  }

  #token(): void {
    const byte = this.#bytes[this.#at] as number;
    if (this.#word !== undefined) {
      this.#readWord();
    } else if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      this.#at++;
    } else if (this.#next === 'value') {
      this.#value(byte);
    } else if (this.#next === 'comma') {
      if (byte === COMMA) this.#step(this.#open[this.#depth - 1] === OBJECT ? 'key' : 'value');
      else this.#close(byte);
    } else if (this.#next === 'colon') {
      if (byte !== COLON) throw unexpected();
      this.#step('value');
    } else if (this.#next === 'key' || (this.#next === 'first key' && byte === QUOTE)) {
      if (byte !== QUOTE) throw unexpected();
      this.#string();
    } else if (this.#next === 'first item' && byte !== ARRAY_END) {
      this.#next = 'value';
    } else {
      this.#close(byte);
    }
  }

  #step(next: Next): void {
    this.#at++;
    this.#next = next;
  }

  #value(byte: number): void {
    if (byte === QUOTE) {
      this.#string();
    } else if (byte === OBJECT || byte === ARRAY) {
      const container = byte === OBJECT ? {} : [];
      this.#add(container);
      if (this.#depth === this.#open.length) this.#open = Buffer.concat([this.#open], this.#open.length * 2);
      this.#open[this.#depth++] = byte;
      if (!this.#refused) {
        this.#built.push(container);
        this.#keys.push('');
        this.#sizes.push(0);
      }
      this.#step(byte === OBJECT ? 'first key' : 'first item');
    } else {
      this.#word = '';
      this.#readWord();
    }
  }

  /** Reads a number, `true`, `false` or `null`; JSON.parse rejects anything else. */
  #readWord(): void {
    let end = this.#at;
    while (end < this.#bytes.length && !TOKEN_ENDS[this.#bytes[end] as number]) end++;
    this.#word = (this.#word ?? '') + this.#bytes.toString('latin1', this.#at, end);
    this.#at = end;
    if (end < this.#bytes.length) this.#endWord(this.#word);
  }

  #endWord(word: string): void {
    this.#word = undefined;
    this.#end(JSON.parse(word));
  }

  #close(byte: number): void {
    const opened = this.#open[this.#depth - 1];
    if (this.#next === 'end' || byte !== (opened === OBJECT ? OBJECT_END : ARRAY_END)) throw unexpected();
    this.#depth--;
    if (!this.#refused) {
      this.#built.pop();
      this.#keys.pop();
      this.#sizes.pop();
    }
    this.#step(this.#depth === 0 ? 'end' : 'comma');
  }

  /** Starts a string. Strings without escaped quotes that end in this piece take a fast path. */
  #string(): void {
    const end = this.#bytes.indexOf(QUOTE, this.#at + 1);
    if (end >= 0 && this.#bytes[end - 1] !== BACKSLASH) {
      const text = JSON.parse(this.#bytes.toString(this.#encoding, this.#at, end + 1)) as string;
      this.#at = end + 1;
      this.#endString(text);
    } else {
      this.#text = '';
      this.#at++;
    }
  }

  /** Reads a string up to its end or the end of the piece. @returns false if nothing could be read */
  #readString(): boolean {
    const bytes = this.#bytes;
    let end = this.#at;
    while (end < bytes.length && bytes[end] !== QUOTE) {
      const length = bytes[end] !== BACKSLASH ? 1 : bytes[end + 1] === 0x75 ? 6 : 2;
      if (end + length > bytes.length) break;
      end += length;
    }
    const isEnd = bytes[end] === QUOTE;
    if (end === this.#at && !isEnd) return false;
    const part = JSON.parse(`"${bytes.toString(this.#encoding, this.#at, end)}"`) as string;
    const text = (this.#text ?? '') + part;
    this.#at = isEnd ? end + 1 : end;
    this.#text = isEnd ? undefined : text;
    if (isEnd) this.#endString(text);
    return true;
  }

  #endString(text: string): void {
    if (this.#next === 'value') this.#end(text);
    else this.#key(text);
  }

  #key(key: string): void {
    this.#next = 'colon';
    if (this.#refused) return;
    const last = this.#depth - 1;
    const inConstructor = this.#keys[last - 1] === 'constructor' && this.#open[last - 1] === OBJECT;
    if (key === '__proto__' || (key === 'prototype' && inConstructor)) {
      this.#refuse(PROTOTYPE_KEYS);
    } else if (this.#sizes[last] === MAX_KEYS) {
      this.#refuse(`must have at most ${MAX_KEYS} fields`, last);
    } else {
      this.#keys[last] = key;
      this.#sizes[last] = (this.#sizes[last] as number) + 1;
      // In other objects the last value of a repeated key is used, as in JSON.parse.
      const isRepeated = this.#keys[last - 1] === 'headers' && Object.hasOwn(this.#built[last] ?? {}, key);
      if (isRepeated) this.#refuse(REPEATED_HEADER, last + 1);
    }
  }

  #end(value: unknown): void {
    this.#add(value);
    this.#next = this.#depth === 0 ? 'end' : 'comma';
  }

  #add(value: unknown): void {
    if (this.#refused) return;
    const last = this.#depth - 1;
    const container = this.#built[last];
    if (++this.#values > MAX_VALUES) {
      this.#refuse('the request body holds too many values');
    } else if (container === undefined) {
      this.#whole = value;
    } else if (!Array.isArray(container)) {
      container[this.#keys[last] as string] = value;
    } else if (container.length < MAX_ITEMS) {
      container.push(value);
    } else {
      this.#refuse(`must have at most ${MAX_ITEMS} items`, last);
    }
  }

  /** Records the error and stops building values. @param depth the depth of the invalid array or object; 0 is the whole body */
  #refuse(problem: string, depth = 0): void {
    const parts = this.#built
      .slice(0, Math.min(depth, MAX_PATH_PARTS))
      .map((container, index) => (Array.isArray(container) ? container.length - 1 : this.#keys[index]));
    this.#refused = { path: parts.length > 0 ? parts.join('.') : undefined, problem };
    this.#built = [];
    this.#keys = [];
    this.#sizes = [];
    this.#whole = undefined;
  }
}

function unexpected(): SyntaxError {
  return new SyntaxError('not JSON');
}

/** Returns the end of the last complete UTF-8 character. */
function endOfCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
