import { randomInt } from 'node:crypto';
import { decodeTime, encodeTime, monotonicFactory } from 'ulid';

type IdPrefix =
  | 'em'
  | 'bt'
  | 'att'
  | 'wa'
  | 'in'
  | 'evt'
  | 'dm'
  | 'wh'
  | 'sup'
  | 'key'
  | 'org'
  | 'usr'
  | 'num'
  | 'sms'
  | 'snd'
  | 'req'
  | 'call'
  | 'grp'
  | 'inv'
  | 'aud';

/**
 * Ids keep their order if the clock is set back by at most this time. After a larger step, which corrects a clock that was
 * wrong, they follow the clock; otherwise they would keep the wrong time until the process is restarted.
 */
const MAX_STEP_BACK_MS = 60_000;

/** Uses Node's randomInt, which buffers random bytes; the library would request them 16 times per id. */
const makeGenerator = () => monotonicFactory(() => randomInt(32) / 32);
let generate = makeGenerator();
let latest = 0;

/**
 * Generates an id: prefix, `_` and 26 characters of lower-case base32 over 48 bits of time and 80 random bits (a ULID). Ids
 * of one process sort by creation, also within a millisecond, unless the clock is set back by more than a minute.
 * @param now Unix milliseconds
 */
export function newId<P extends IdPrefix>(prefix: P, now = Date.now()): `${P}_${string}` {
  if (now < latest - MAX_STEP_BACK_MS) {
    generate = makeGenerator();
    latest = 0;
  }
  latest = Math.max(latest, now);
  return `${prefix}_${generate(now).toLowerCase()}`;
}

/** Returns the creation time of an id by the clock of its process, in Unix milliseconds. */
export function createdAt(id: string): number {
  return decodeTime(id.slice(id.indexOf('_') + 1).toUpperCase());
}

/**
 * Returns the lower bound of ids of a millisecond, without the prefix: earlier ids sort before it. @param at Unix
 * milliseconds
 */
export function idTime(at: number): string {
  return encodeTime(at).toLowerCase();
}
