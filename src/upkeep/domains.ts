import type { Logger } from 'pino';
import type { PostmarkDomains } from '../providers/postmark/domains.ts';
import { wakeOverdueDomains } from '../store/domains/domains.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { deferUnusedDomain, dueUnusedDomains, endUnusedDomain } from '../store/domains/provider-domains.ts';
import type { UpkeepStep } from './task.ts';

export interface DomainChoreDeps {
  readonly pool: Pool;
  /** Undefined where the account token is not known: then what is there stays there. */
  readonly removeFromPostmark: PostmarkDomains['remove'] | undefined;
  readonly log: Logger;
}

/** Domains of one step. */
const AT_ONCE = 100;

/** Chores around the domains that organizations send from. */
export function makeDomainChores({ pool, removeFromPostmark, log }: DomainChoreDeps) {
  return {
    /** Wakes domains whose workflow was lost. */
    async wakeDomains(): Promise<UpkeepStep> {
      const done = await wakeOverdueDomains(pool, AT_ONCE);
      if (done > 0) log.info({ domains: done }, 'woke domains that should have been checked');
      return { done, next: done === AT_ONCE ? '' : null };
    },

    /**
     * Deletes domains at Postmark that nobody has here any more, as far as we made them there. While Postmark is away,
     * each is put off ever longer, and none is forgotten.
     */
    async clearProviderDomains(): Promise<UpkeepStep> {
      const unused = await dueUnusedDomains(pool, AT_ONCE);
      let done = 0;
      for (const domain of unused) {
        try {
          if (domain.ours && !domain.is_used) await removeFromPostmark?.(domain.provider_id);
        } catch (error) {
          log.warn({ reason: (error as Error).message }, 'Postmark cannot be asked to delete a domain');
          await deferUnusedDomain(pool, domain.name);
          // Whoever is away for one is away for the others.
          return { done, next: null };
        }
        await endUnusedDomain(pool, domain);
        done++;
      }
      return { done, next: unused.length === AT_ONCE ? '' : null };
    },
  };
}
