import { parseRanges, type Ranges } from '../../lib/ip-ranges.ts';
import { type ApiKey, findKey, noteUses } from './keys.ts';
import { listen } from '../postgres/listen.ts';
import type { Pool } from '../postgres/pool.ts';

/** Time for which a key is fresh while notices are received. Notices invalidate keys; this is only a fallback. */
const LISTENING_TTL_MS = 10_000;
/** Time for which a key is fresh without notices, and an unknown key always. */
const UNVERIFIED_TTL_MS = 600;
/** Time between two liveness checks of the listening connection. */
const LIVENESS_INTERVAL_MS = 250;
/**
 * Time for which the connection counts as alive after a successful check. The longer of this and UNVERIFIED_TTL_MS bounds
 * how long a revoked key is accepted when the connection breaks silently.
 */
const LISTENING_LEASE_MS = 700;
/** Entries per map: known keys and unknown ids. */
const MAX_ENTRIES = 10_000;
/** Time between two updates of a key's last use. */
const USE_INTERVAL_MS = 60_000;
/** Time for which uses are collected into one statement. */
const USE_BATCH_MS = 1_000;

/** A key with parsed address ranges. */
export interface CachedKey extends ApiKey {
  readonly allowed: Ranges | null;
}

/** Caches API keys, so that a request needs no database round trip. */
export interface KeyCache {
  /**
   * Returns the key with this id unless it is revoked or expired. Every process refuses a revoked key within a second, even
   * if the connection that receives notices breaks or stalls.
   */
  readonly find: (id: string) => Promise<CachedKey | undefined>;
  /** Returns true if the id is cached as a key, so that `find` is not likely to query the database in vain. */
  readonly isCached: (id: string) => boolean;
  /** Records the use of a key in the background, about once a minute. */
  readonly recordUse: (id: string) => void;
  /** Writes pending uses and stops listening. */
  readonly stop: () => Promise<void>;
}

interface Entry {
  readonly key: CachedKey | undefined;
  /** `performance.now()` before the query, and at the key's expiry. */
  readonly startedAt: number;
  readonly expiresAt: number;
}

interface Query {
  readonly startedAt: number;
  readonly result: Promise<CachedKey | undefined>;
}

/** @param onError called when uses could not be written; later uses are */
export function openKeyCache(pool: Pool, databaseUrl: string, onError: (error: unknown) => void): KeyCache {
  const keys = new Map<string, Entry>();
  const unknownIds = new Map<string, Entry>();
  const queries = new Map<string, Query>();
  const uses = recordUsesInBackground(pool, onError);
  let noticeCount = 0;
  let listeningUntil = -Infinity;

  const isFresh = ({ key, startedAt, expiresAt }: Entry, now: number): boolean =>
    now < expiresAt && now - startedAt < (key && now < listeningUntil ? LISTENING_TTL_MS : UNVERIFIED_TTL_MS);

  const startQuery = (id: string): Query => {
    const startedAt = performance.now();
    const noticesBefore = noticeCount;
    const result = findKey(pool, id).then((row) => {
      const key = row && { ...row, allowed: row.allowed_ips && parseRanges(row.allowed_ips) };
      // A result that was read before a change notice may be stale.
      if (noticesBefore === noticeCount) {
        const expiresAt = key?.expires_in == null ? Infinity : startedAt + key.expires_in;
        cacheEntry(key ? keys : unknownIds, id, { key, startedAt, expiresAt });
        (key ? unknownIds : keys).delete(id);
      }
      return key;
    });
    const query = { startedAt, result };
    const forget = (): void => {
      if (queries.get(id) === query) queries.delete(id);
    };
    result.then(forget, forget);
    queries.set(id, query);
    return query;
  };

  const stopListening = listen(databaseUrl, {
    name: 'key listener',
    channel: 'keys',
    onNotice(id) {
      noticeCount++;
      for (const each of [keys, unknownIds, queries]) each.delete(id);
    },
    onListening(askedAt) {
      noticeCount++;
      for (const each of [keys, unknownIds, queries]) each.clear();
      listeningUntil = askedAt + LISTENING_LEASE_MS;
    },
    ask: {
      every: LIVENESS_INTERVAL_MS,
      onAnswer(askedAt) {
        listeningUntil = askedAt + LISTENING_LEASE_MS;
      },
    },
  });

  return {
    async find(id) {
      const now = performance.now();
      const cached = keys.get(id) ?? unknownIds.get(id);
      if (cached && isFresh(cached, now)) return cached.key;
      const pending = queries.get(id);
      return (pending && now - pending.startedAt < UNVERIFIED_TTL_MS ? pending : startQuery(id)).result;
    },
    isCached: (id) => keys.has(id),
    recordUse: uses.note,
    async stop() {
      await Promise.all([stopListening(), uses.stop()]);
    },
  };
}

/** Evicts the oldest entry when full. */
function cacheEntry(entries: Map<string, Entry>, id: string, entry: Entry): void {
  entries.delete(id);
  entries.set(id, entry);
  const [oldest] = entries.size > MAX_ENTRIES ? entries.keys() : [];
  if (oldest !== undefined) entries.delete(oldest);
}

function recordUsesInBackground(
  pool: Pool,
  onError: (error: unknown) => void,
): { readonly note: (id: string) => void; readonly stop: () => Promise<void> } {
  /** When the use of each key was last recorded. */
  const recordedAt = new Map<string, number>();
  let pendingIds = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    timer = undefined;
    const ids = [...pendingIds];
    pendingIds = new Set();
    const old = performance.now() - USE_INTERVAL_MS;
    for (const [id, at] of recordedAt) if (at < old) recordedAt.delete(id);
    try {
      if (ids.length > 0) await noteUses(pool, ids);
    } catch (error) {
      // The next use is recorded again.
      for (const id of ids) recordedAt.delete(id);
      onError(error);
    }
  };
  return {
    note(id: string): void {
      const now = performance.now();
      if (now - (recordedAt.get(id) ?? -Infinity) < USE_INTERVAL_MS) return;
      recordedAt.set(id, now);
      pendingIds.add(id);
      timer ??= setTimeout(() => {
        writing = write();
      }, USE_BATCH_MS).unref();
    },
    async stop(): Promise<void> {
      clearTimeout(timer);
      await writing;
      await write();
    },
  };
}
