import type { Logger } from 'pino';
import type { PostmarkDomains } from '../providers/postmark/domains.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { deferUnusedDomain, dueUnusedDomains, endUnusedDomain } from '../store/domains/provider-domains.ts';
import { toStep, type UpkeepStep } from './task.ts';

export interface DomainUpkeepDeps {
  readonly pool: Pool;
  /** Undefined without an account token: the domains then remain at Postmark. */
  readonly removeFromPostmark: PostmarkDomains['remove'] | undefined;
  readonly log: Logger;
}

const DOMAINS_PER_STEP = 100;

/** Maintenance tasks for sender domains. */
export function makeDomainUpkeep({ pool, removeFromPostmark, log }: DomainUpkeepDeps) {
  return {
    /**
     * Deletes domains at Postmark that we created and no organization uses. Failures are retried with exponential backoff.
     */
    async clearProviderDomains(): Promise<UpkeepStep> {
      for (let done = 0; done < DOMAINS_PER_STEP; done++) {
        // One at a time, because an organization may register the next one again meanwhile.
        const [domain] = await dueUnusedDomains(pool, 1);
        if (!domain) return toStep(done, DOMAINS_PER_STEP);
        try {
          if (domain.ours && !domain.is_used) await removeFromPostmark?.(domain.provider_id);
        } catch (error) {
          log.warn({ reason: (error as Error).message }, 'could not delete a domain at Postmark');
          await deferUnusedDomain(pool, domain.name);
          // Postmark is probably unreachable for the other domains as well.
          return { done, next: null };
        }
        await endUnusedDomain(pool, domain);
      }
      return toStep(DOMAINS_PER_STEP, DOMAINS_PER_STEP);
    },
  };
}
