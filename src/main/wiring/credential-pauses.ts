import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { closePausesOfReason, openPauses } from '../../store/upkeep/provider-pauses.ts';
import { CREDENTIALS_MISSING, credentialProblems } from './email-providers.ts';

/**
 * Pauses email providers without credentials at startup, so that `/metrics` shows them before the first email fails to
 * leave. Ends the pauses of providers that have credentials now: their email does not wait for the next probe.
 */
export async function updateCredentialPauses(config: Config, pool: Pool, log: Pick<Logger, 'warn'>): Promise<void> {
  const problems = credentialProblems(config);
  try {
    const ready = problems.filter(([, problem]) => problem === undefined).map(([provider]) => provider);
    await closePausesOfReason(pool, ready, CREDENTIALS_MISSING);
    const missing = problems.flatMap(([provider, reason]) => (reason ? { provider, sender: '', reason } : []));
    await openPauses(pool, missing);
  } catch (error) {
    log.warn({ err: error }, 'pauses of email providers could not be updated at startup');
  }
}
