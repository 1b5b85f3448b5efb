import { LRUCache } from 'lru-cache';
import type { Tag } from '../domain/email/email.ts';
import { makeSemaphore } from '../lib/semaphore.ts';
import { formatNumber } from '../lib/text.ts';
import { lockLimit } from '../store/accounts/organization-limits.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { registerTags } from '../store/emails/tags.ts';
import { limitExceeded } from '../accounts/organization-limits.ts';

/** The maximum number of tags in the cache of one process, for all organizations: at most 30 MB for the longest tags. */
const MAX_REMEMBERED_TAGS = 50_000;

/**
 * Limits the distinct tags of an organization. A tag is registered before the first message with it is stored. A process caches
 * registered tags, so that only messages with new tags need statements and locks. It may use a tag whose emails have all expired,
 * and which no longer counts, without registering it again.
 */
export interface TagRegistry {
  /** Adds the tags that are not in the cache to `unknown`. */
  readonly collectUnknown: (orgId: string, tags: readonly Tag[], unknown: Map<string, Tag>) => void;
  /** @throws ServiceError limit_exceeded; then none of them is registered */
  readonly register: (orgId: string, unknown: ReadonlyMap<string, Tag>) => Promise<void>;
}

/** The registry without a tag limit. */
export const UNLIMITED_TAGS: TagRegistry = { collectUnknown: () => undefined, register: async () => undefined };

/** @param limit the maximum number of distinct tags of one organization; 0 means no limit */
export function makeTagRegistry(pool: Pool, limit: number): TagRegistry {
  if (limit === 0) return UNLIMITED_TAGS;
  const registered = new LRUCache<string, true>({ max: MAX_REMEMBERED_TAGS });
  const turns = makeSemaphore(Infinity, 1);

  const write = async (orgId: string, tags: ReadonlyMap<string, Tag>): Promise<void> => {
    const missing = [...tags].filter(([key]) => !registered.has(key));
    const result = await transaction(pool, async (client) => {
      await lockLimit(client, 'tags', orgId);
      return registerTags(
        client,
        orgId,
        missing.map(([, tag]) => tag),
        limit,
      );
    });
    if (result.added > 0 && result.registered + result.added > limit) throw tooMany(limit, result.added);
    for (const [key] of missing) registered.set(key, true);
  };

  return {
    collectUnknown(orgId, tags, unknown) {
      for (const tag of tags) {
        // Names and values contain no spaces.
        const key = `${orgId} ${tag.name} ${tag.value}`;
        if (!registered.get(key)) unknown.set(key, tag);
      }
    },
    // Registrations are serialized per organization, so that one that always sends new tags uses at most one connection.
    async register(orgId, unknown) {
      const release = await turns.take(1, { holder: orgId });
      await write(orgId, unknown).finally(release);
    },
  };
}

function tooMany(limit: number, added: number) {
  return limitExceeded(
    `an organization may have ${formatNumber(limit)} distinct tags; this request would add ${formatNumber(added)} new ones`,
  );
}
