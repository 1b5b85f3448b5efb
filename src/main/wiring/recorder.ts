import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { makeAttemptRecorder } from '../../delivery/call.ts';
import type { AttemptRecorder } from '../../delivery/contract.ts';
import { makeFailOverCheck } from '../../delivery/fail-over.ts';
import { startWorkerLease } from '../../delivery/worker-lease.ts';
import { openPool } from './database.ts';
import { lookUpOf } from './email-providers.ts';

/**
 * Opens the recorder of a process that delivers messages, with its lease. The results of calls have their own connections, because all
 * connections of the shared pool may be waiting for a lock; the lease has one more.
 * @param name as for `openPool`
 */
export function openRecorder(
  config: Config & { readonly DATABASE_URL: string },
  log: Logger,
  name: string,
  max: number,
): { readonly recorder: AttemptRecorder; readonly stop: () => Promise<void> } {
  const pool = openPool(config, log, name, max + 1);
  const check = makeFailOverCheck({ pool, lookUp: lookUpOf(config), messageProviders: ['twilio'], log });
  const lease = startWorkerLease(pool, check, (error) => log.warn({ err: error }, 'worker lease lost, sending paused'));
  const stop = async (): Promise<void> => {
    await lease.stop();
    await pool.end();
  };
  return { recorder: makeAttemptRecorder(pool, log, lease), stop };
}
