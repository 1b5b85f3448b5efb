import { randomInt } from 'node:crypto';
import { decodeTime, encodeTime, monotonicFactory } from 'ulid';

/** What an id names. Listed in the contract's order. */
export type IdPrefix =
  | 'em'
  | 'bt'
  | 'att'
  | 'wa'
  | 'evt'
  | 'dm'
  | 'wh'
  | 'sup'
  | 'key'
  | 'org'
  | 'usr'
  | 'num'
  | 'req'
  | 'call'
  | 'grp'
  | 'inv'
  | 'aud';

/** Draws 16 characters a millisecond. Node takes integers from a store of random bytes; the library makes a call for each. */
const next = monotonicFactory(() => randomInt(32) / 32);

/**
 * A new id: prefix, `_` and 26 characters of lower-case base32 over 48 bits of time and 80 random bits (a ULID), so ids
 * of one process sort by creation, also within a millisecond.
 * @param now Unix milliseconds
 */
export function newId<P extends IdPrefix>(prefix: P, now: number): `${P}_${string}` {
  return `${prefix}_${next(now).toLowerCase()}`;
}

/** When an id was made, by the clock of the process that made it. @returns Unix milliseconds */
export function createdAt(id: string): number {
  return decodeTime(id.slice(id.indexOf('_') + 1).toUpperCase());
}

/** How the ids of a millisecond begin after their prefix: all that were made earlier sort before it. @param at Unix milliseconds */
export function idTime(at: number): string {
  return encodeTime(at).toLowerCase();
}
