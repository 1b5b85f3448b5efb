import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { startLoop } from '../../lib/background-loop.ts';
import { parseRanges, type Ranges } from '../../lib/ip-ranges.ts';
import type { Pool } from '../postgres/pool.ts';
import { type ApiKey, findKeys, recordUses } from './keys.ts';

/** Bounds how long a revoked key is accepted, and how long an unknown id costs no query. */
const MAX_AGE_MS = 900;
/** A key that is used at this age is read again in the background, so that no request waits for the query. */
const REFRESH_AFTER_MS = 400;
/** Known keys and unknown ids. */
const MAX_ENTRIES = 20_000;
/** Time between two updates of a key's last use. */
const USE_INTERVAL_MS = 60_000;
const WRITE_USES_INTERVAL_MS = 1_000;

/** A key with parsed address ranges. */
interface CachedKey extends ApiKey {
  readonly allowed: Ranges | null;
}

export type KeyCache = ReturnType<typeof openKeyCache>;

interface Entry {
  /** `performance.now()` before the query. */
  readAt: number;
  readonly key: Promise<CachedKey | undefined>;
  /** True if the last query that succeeded found the key. */
  isKey: boolean;
  isRefreshing: boolean;
}

/**
 * Caches API keys, so that a request needs no database round trip.
 * @param onError called when uses could not be written; the next use is recorded again
 */
export function openKeyCache(pool: Pool, onError: (error: unknown) => void) {
  const entries = new LRUCache<string, Entry>({ max: MAX_ENTRIES });
  const load = makeLoader(pool);
  const recentUses = new LRUCache<string, true>({ max: MAX_ENTRIES, ttl: USE_INTERVAL_MS });
  const pendingUses = new Set<string>();

  const read = (id: string, isKey = false): Entry => {
    const entry: Entry = { readAt: performance.now(), key: load(id), isKey, isRefreshing: false };
    entry.key.then(
      (key) => (entry.isKey = key !== undefined),
      () => (entry.readAt = -Infinity),
    );
    return entry;
  };
  /** After a failure the entry stays until MAX_AGE_MS. */
  const refresh = (id: string, entry: Entry): void => {
    entry.isRefreshing = true;
    const next = read(id, entry.isKey);
    next.key.then(
      () => entries.set(id, next),
      () => undefined,
    );
  };

  const writeUses = async (): Promise<void> => {
    const ids = [...pendingUses];
    pendingUses.clear();
    try {
      if (ids.length > 0) await recordUses(pool, ids);
    } catch (error) {
      for (const id of ids) recentUses.delete(id);
      throw error;
    }
  };
  const stopWritingUses = startLoop(WRITE_USES_INTERVAL_MS, writeUses, onError);

  return {
    /** Returns the key with this id unless it is revoked or expired. A revoked key is refused within a second. */
    async find(id: string): Promise<CachedKey | undefined> {
      let entry = entries.get(id);
      const ageMs = entry ? performance.now() - entry.readAt : Infinity;
      if (!entry || ageMs >= MAX_AGE_MS) {
        entry = read(id, entry?.isKey);
        entries.set(id, entry);
      } else if (ageMs >= REFRESH_AFTER_MS && !entry.isRefreshing) refresh(id, entry);
      const key = await entry.key;
      return key?.expires_in == null || performance.now() < entry.readAt + key.expires_in ? key : undefined;
    },
    /** Returns true if the id is cached as a key, so that `find` is not likely to query the database in vain. */
    isCached: (id: string): boolean => entries.peek(id)?.isKey ?? false,
    /** Records the use of a key in the background, about once a minute. */
    recordUse(id: string): void {
      if (recentUses.has(id)) return;
      recentUses.set(id, true);
      pendingUses.add(id);
    },
    /** Writes pending uses. */
    stop: async (): Promise<void> => {
      await stopWritingUses();
      await writeUses().catch(onError);
    },
  };
}

/** Returns a function that reads a key. Reads that are requested in the same turn of the event loop share a query. */
function makeLoader(pool: Pool): (id: string) => Promise<CachedKey | undefined> {
  let ids: string[] = [];
  let query: Promise<Map<string, CachedKey>> | undefined;
  const queryKeys = async (): Promise<Map<string, CachedKey>> => {
    await setImmediate();
    const taken = ids;
    ids = [];
    query = undefined;
    const rows = await findKeys(pool, taken);
    return new Map(rows.map((row) => [row.id, { ...row, allowed: row.allowed_ips && parseRanges(row.allowed_ips) }]));
  };
  return async (id) => {
    ids.push(id);
    query ??= queryKeys();
    return (await query).get(id);
  };
}
