import { checkDomain } from '../src/sender-domains/check.ts';
import type { SenderDomainDeps } from '../src/sender-domains/deps.ts';
import { findDomain } from '../src/store/domains/domains.ts';

/** What is left to watch of a domain. */
export type Watched =
  /** It is to be checked in `inMs` milliseconds by the database's clock; 0 when that is due already. */
  | { readonly state: 'asleep'; readonly inMs: number }
  /** It has failed, is taken on trust, or was deleted. */
  | { readonly state: 'closed' };

/** The activities of the task queue `domains`. */
export function makeDomainActivities(deps: SenderDomainDeps) {
  return {
    /** Checks a domain if that is due, as any check may be repeated. */
    async watchDomain({ id }: { readonly id: string }): Promise<Watched> {
      const domain = await findDomain(deps.pool, null, id);
      if (domain?.due_in === 0) await checkDomain(deps, domain, true);
      const { due_in: inMs = null } =
        domain?.due_in === 0 ? ((await findDomain(deps.pool, null, id)) ?? {}) : (domain ?? {});
      return inMs === null ? { state: 'closed' } : { state: 'asleep', inMs };
    },
  };
}
export type DomainActivities = ReturnType<typeof makeDomainActivities>;
