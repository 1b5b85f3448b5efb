import { createSecretKey, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { DataKey } from '../../domain/email/content.ts';
import { makeSeal } from '../../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import type { Db } from '../postgres/pool.ts';
import { addSeals, findDataKey, insertDataKey } from './data-keys.ts';

/** The data keys of organizations. Keys are cached, so a known key costs no round trip. */
export interface KeyRing {
  /**
   * Returns the key that new content is sealed with, and counts `seals` values for it. Creates the first key of an organization,
   * and the next one when the latest is due for rotation.
   * @param db not a transaction: a key that is rolled back must not have encrypted anything
   */
  readonly latest: (db: Db, orgId: string, seals: number) => Promise<DataKey>;
  /** @throws if there is no such key, or it cannot be opened with the secret keys */
  readonly ofVersion: (db: Db, orgId: string, version: number) => Promise<DataKey>;
  /** Returns the first key, from which hashes are derived; undefined if the organization has none. */
  readonly first: (db: Db, orgId: string) => Promise<DataKey | undefined>;
}

const FIRST_VERSION = 1;
const MAX_CACHED_KEYS = 10_000;
/** A process that runs for a year finds the next key of its organizations within this time. */
const LATEST_KEY_TTL_MS = 24 * 3_600_000;
/**
 * Values that a process seals with a key before it adds them to the key's count. A process that ends earlier leaves them
 * uncounted, which the margin of `MAX_SEALS` covers for tens of thousands of restarts.
 */
const SEALS_PER_COUNT = 65_536;

/** @param secretKeys the settings `SECRET_KEY` and `SECRET_KEY_OLD`, which wrap the data keys */
export function makeKeyRing(secretKeys: SecretKeys): KeyRing {
  const wrap = makeSeal(deriveKeys(secretKeys, 'data keys'));
  const cache = new LRUCache<string, Promise<DataKey>>({ max: MAX_CACHED_KEYS });
  const uncounted = new Map<string, number>();

  function cached(name: string, load: () => Promise<DataKey>, ttl?: number): Promise<DataKey> {
    const entry = cache.get(name);
    if (entry) return entry;
    const loading = load();
    cache.set(name, loading, ttl === undefined ? {} : { ttl });
    loading.catch(() => cache.delete(name));
    return loading;
  }

  async function load(db: Db, orgId: string, version: number | null) {
    const found = await findDataKey(db, orgId, version);
    if (!found) return undefined;
    const key = createSecretKey(wrap.open(found.sealed, aboutDataKey(orgId, found.version)));
    return { version: found.version, key, isDue: found.is_due };
  }

  async function loadLatest(db: Db, orgId: string): Promise<DataKey> {
    const found = await load(db, orgId, null);
    if (found && !found.isDue) return found;
    const version = found ? found.version + 1 : FIRST_VERSION;
    await insertDataKey(db, orgId, { version, sealed: wrap.close(randomBytes(32), aboutDataKey(orgId, version)) });
    // If another process has stored a key first, that one is used.
    const stored = await load(db, orgId, null);
    if (!stored) throw new Error(`the data key of ${orgId} was not stored`);
    return stored;
  }

  /** Counts in the background: the caller may hold a connection of the pool. */
  function countSeals(db: Db, orgId: string, { version }: DataKey, seals: number): void {
    const name = `${orgId} ${version}`;
    const count = (uncounted.get(name) ?? 0) + seals;
    uncounted.set(name, count < SEALS_PER_COUNT ? count : 0);
    if (count < SEALS_PER_COUNT) return;
    addSeals(db, orgId, version, count).then(
      (isDue) => isDue && cache.delete(orgId),
      () => uncounted.set(name, (uncounted.get(name) ?? 0) + count),
    );
  }

  return {
    async latest(db, orgId, seals) {
      const key = await cached(orgId, () => loadLatest(db, orgId), LATEST_KEY_TTL_MS);
      countSeals(db, orgId, key, seals);
      return key;
    },
    ofVersion: (db, orgId, version) =>
      cached(`${orgId} ${version}`, async () => {
        const found = await load(db, orgId, version);
        if (!found) throw new Error(`there is no data key ${version} of ${orgId}`);
        return found;
      }),
    async first(db, orgId) {
      const name = `${orgId} ${FIRST_VERSION}`;
      if (cache.has(name)) return cache.get(name);
      const found = await load(db, orgId, FIRST_VERSION);
      return found && cached(name, () => Promise.resolve(found));
    },
  };
}

/** Returns the context that a data key is sealed with. */
function aboutDataKey(orgId: string, version: number): string {
  return `${orgId} ${version}`;
}
