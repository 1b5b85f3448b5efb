import { parseRanges, type Ranges } from '../../lib/ip-ranges.ts';
import { type ApiKey, findKey, noteUses } from './keys.ts';
import { listen } from '../postgres/listen.ts';
import type { Pool } from '../postgres/pool.ts';

/** Time for which a key is fresh while notices are received. Notices invalidate keys; this is only a fallback. */
const WHILE_LISTENING = 10_000;
/** Time for which a key is fresh without notices, and an unknown key always. */
const OTHERWISE = 600;
/** Time between two liveness checks of the listening connection. */
const ASK_EVERY = 250;
/**
 * Time for which the connection counts as alive after a successful check. The longer of this and UNVERIFIED_TTL_MS bounds
 * how long a revoked key is accepted when the connection breaks silently.
 */
const LEASE = 700;
/** Entries per map: known keys and unknown ids. */
const MOST = 10_000;
/** Time between two updates of a key's last use. */
const NOTE_EVERY = 60_000;
/** Time for which uses are collected into one statement. */
const GATHER = 1_000;

/** A key with parsed address ranges. */
export interface KnownKey extends ApiKey {
  readonly allowed: Ranges | null;
}

/** Caches API keys, so that a request needs no database round trip. */
export interface KeyRing {
  /**
   * Returns the key with this id unless it is revoked or expired. Every process refuses a revoked key within a second, even
   * if the connection that receives notices breaks or stalls.
   */
  readonly find: (id: string) => Promise<KnownKey | undefined>;
  /** Returns true if the id is cached as a key, so that `find` is not likely to query the database in vain. */
  readonly isKnown: (id: string) => boolean;
  /** Records the use of a key in the background, about once a minute. */
  readonly used: (id: string) => void;
  /** Writes pending uses and stops listening. */
  readonly stop: () => Promise<void>;
}

interface Entry {
  readonly key: KnownKey | undefined;
  /** `performance.now()` before the query, and at the key's expiry. */
  readonly askedAt: number;
  readonly lasts: number;
}

interface Question {
  readonly askedAt: number;
  readonly answer: Promise<KnownKey | undefined>;
}

/** @param onError called when uses could not be written; later uses are */
export function openKeyRing(pool: Pool, databaseUrl: string, onError: (error: unknown) => void): KeyRing {
  const keys = new Map<string, Entry>();
  const strangers = new Map<string, Entry>();
  const questions = new Map<string, Question>();
  const uses = noteInBackground(pool, onError);
  let changes = 0;
  let listeningUntil = -Infinity;

  const isBelieved = ({ key, askedAt, lasts }: Entry, now: number): boolean =>
    now < lasts && now - askedAt < (key && now < listeningUntil ? WHILE_LISTENING : OTHERWISE);

  const ask = (id: string): Question => {
    const askedAt = performance.now();
    const before = changes;
    const answer = findKey(pool, id).then((found) => {
      const key = found && { ...found, allowed: found.allowed_ips && parseRanges(found.allowed_ips) };
      // A result that was read before a change notice may be stale.
      if (before === changes) {
        const lasts = key?.expires_in == null ? Infinity : askedAt + key.expires_in;
        remember(key ? keys : strangers, id, { key, askedAt, lasts });
        (key ? strangers : keys).delete(id);
      }
      return key;
    });
    const question = { askedAt, answer };
    const forget = (): void => {
      if (questions.get(id) === question) questions.delete(id);
    };
    answer.then(forget, forget);
    questions.set(id, question);
    return question;
  };

  const stopListening = listen(databaseUrl, {
    name: 'key listener',
    channel: 'keys',
    onNotice(id) {
      changes++;
      for (const each of [keys, strangers, questions]) each.delete(id);
    },
    onListening(askedAt) {
      changes++;
      for (const each of [keys, strangers, questions]) each.clear();
      listeningUntil = askedAt + LEASE;
    },
    ask: {
      every: ASK_EVERY,
      onAnswer(askedAt) {
        listeningUntil = askedAt + LEASE;
      },
    },
  });

  return {
    async find(id) {
      const now = performance.now();
      const known = keys.get(id) ?? strangers.get(id);
      if (known && isBelieved(known, now)) return known.key;
      const asked = questions.get(id);
      return (asked && now - asked.askedAt < OTHERWISE ? asked : ask(id)).answer;
    },
    isKnown: (id) => keys.has(id),
    used: uses.note,
    async stop() {
      await Promise.all([stopListening(), uses.stop()]);
    },
  };
}

/** Evicts the oldest entry when full. */
function remember(entries: Map<string, Entry>, id: string, entry: Entry): void {
  entries.delete(id);
  entries.set(id, entry);
  const [oldest] = entries.size > MOST ? entries.keys() : [];
  if (oldest !== undefined) entries.delete(oldest);
}

function noteInBackground(
  pool: Pool,
  onError: (error: unknown) => void,
): { readonly note: (id: string) => void; readonly stop: () => Promise<void> } {
  /** When the use of each key was last recorded. */
  const noted = new Map<string, number>();
  let waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    timer = undefined;
    const ids = [...waiting];
    waiting = new Set();
    const old = performance.now() - NOTE_EVERY;
    for (const [id, at] of noted) if (at < old) noted.delete(id);
    try {
      if (ids.length > 0) await noteUses(pool, ids);
    } catch (error) {
      // The next use is recorded again.
      for (const id of ids) noted.delete(id);
      onError(error);
    }
  };
  return {
    note(id: string): void {
      const now = performance.now();
      if (now - (noted.get(id) ?? -Infinity) < NOTE_EVERY) return;
      noted.set(id, now);
      waiting.add(id);
      timer ??= setTimeout(() => {
        writing = write();
      }, GATHER).unref();
    },
    async stop(): Promise<void> {
      clearTimeout(timer);
      await writing;
      await write();
    },
  };
}
