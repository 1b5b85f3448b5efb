import { startLoop } from '../lib/background-loop.ts';
import { claimDueDomains, findDomain } from '../store/domains/domains.ts';
import { checkDomain } from './check.ts';
import type { SenderDomainDeps } from './deps.ts';

const POLL_INTERVAL_MS = 1_000;
/** The maximum number of concurrent checks of one worker. They mostly wait for DNS. */
const MAX_CHECKS = 20;

/**
 * Checks domains that are due. Several workers can share the domains. If a check fails or its worker crashes, the domain is
 * checked again after its lease expires.
 * @returns a function that stops polling; it resolves when no check is in flight
 */
export function startDomainChecks(deps: SenderDomainDeps, pollIntervalMs = POLL_INTERVAL_MS): () => Promise<void> {
  const checks = new Set<Promise<void>>();

  const check = async (id: string): Promise<void> => {
    try {
      const domain = await findDomain(deps.pool, null, id);
      if (domain) await checkDomain(deps, domain, true);
    } catch (error) {
      deps.log.warn({ err: error, domain: id }, 'domain check failed');
    }
  };

  const step = async (): Promise<void> => {
    for (const id of await claimDueDomains(deps.pool, MAX_CHECKS - checks.size)) {
      const run = check(id).finally(() => checks.delete(run));
      checks.add(run);
    }
  };
  const stopLoop = startLoop(pollIntervalMs, step, (error) =>
    deps.log.warn({ err: error }, 'due domains could not be claimed'),
  );
  return async () => {
    await stopLoop();
    await Promise.all(checks);
  };
}
