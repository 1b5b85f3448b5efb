import { parseRanges, type Ranges } from '../../lib/ip-ranges.ts';
import { type ApiKey, findKey, noteUses } from './keys.ts';
import { listen } from '../postgres/listen.ts';
import type { Pool } from '../postgres/pool.ts';

/** Milliseconds for which a key is believed while its end would be heard of. A net below the notices: they are what counts. */
const WHILE_LISTENING = 10_000;
/** Milliseconds for which a key is believed otherwise, and for which one is believed not to exist. */
const OTHERWISE = 600;
/** Milliseconds between two questions whether the listening connection lives. */
const ASK_EVERY = 250;
/**
 * Milliseconds after a question that was answered for which it counts as living. The longer of this and OTHERWISE is how long
 * a key that was revoked may be believed when the connection dies unseen.
 */
const LEASE = 700;
/** Keys in memory; and as many ids that are no keys. */
const MOST = 10_000;
/** Milliseconds between two notes that a key was used. */
const NOTE_EVERY = 60_000;
/** Milliseconds for which uses are gathered before they are noted. */
const GATHER = 1_000;

/** A key with its ranges as they are compared. */
export interface KnownKey extends ApiKey {
  readonly allowed: Ranges | null;
}

/** Keys in memory, so that a request costs no round trip to the database. */
export interface KeyRing {
  /**
   * The key with this id, unless it was revoked or has expired. One that was revoked, by whatever process, is not found any
   * more within a second, also when the connection on which that is told is cut or silent.
   */
  readonly find: (id: string) => Promise<KnownKey | undefined>;
  /** Whether the id was that of a key when the database was last asked, so that `find` is not asked for nothing. */
  readonly isKnown: (id: string) => boolean;
  /** Notes in the background that a key was used, about once a minute. */
  readonly used: (id: string) => void;
  /** Notes what is left to be noted, and listens no more. */
  readonly stop: () => Promise<void>;
}

interface Entry {
  readonly key: KnownKey | undefined;
  /** When the database was asked, and until when the key lasts: `performance.now()`. */
  readonly askedAt: number;
  readonly lasts: number;
}

interface Question {
  readonly askedAt: number;
  readonly answer: Promise<KnownKey | undefined>;
}

/** @param onError told when uses could not be noted; they are noted later */
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
      // What was read before a change that has been told of meanwhile may be out of date.
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

/** The oldest make room. */
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
  /** When each key was last put down to be noted. */
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
      // The next use is noted anew.
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
