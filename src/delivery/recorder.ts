import type { Logger } from 'pino';
import { type AttemptEnding, endAttempts } from '../store/emails/attempts.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { persist } from './persist.ts';

/** A result that cannot be recorded is retried for this long. The timeouts of the activities allow for it. */
export const RECORD_DEADLINE_MS = 600_000;

/** Records the results of provider calls. */
export interface AttemptRecorder {
  /** Commits only the ends of attempts, so that no lock on another table can delay it. Retries for ten minutes. */
  readonly record: (endings: readonly AttemptEnding[]) => Promise<void>;
  /** True while a result could not be recorded. Nothing may be claimed meanwhile. */
  readonly isBlocked: () => boolean;
}

/** @param pool a separate pool: the connections of the shared one may all be waiting for a lock */
export function makeAttemptRecorder(pool: Pool, log: Logger, deadlineMs = RECORD_DEADLINE_MS): AttemptRecorder {
  const blocked = new Set<readonly AttemptEnding[]>();
  return {
    async record(endings) {
      const onFailure = (error: unknown): void => {
        if (blocked.size === 0) log.error({ err: error }, 'recording of results blocked, sending paused');
        blocked.add(endings);
      };
      try {
        await persist(() => endAttempts(pool, endings), deadlineMs, onFailure);
        if (blocked.delete(endings) && blocked.size === 0) log.info('recording of results resumed');
      } finally {
        blocked.delete(endings);
      }
    },
    isBlocked: () => blocked.size > 0,
  };
}
