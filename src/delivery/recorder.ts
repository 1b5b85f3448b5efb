import type { Logger } from 'pino';
import { type AttemptEnding, endAttempts } from '../store/emails/attempts.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { persist } from './persist.ts';

/** Milliseconds for which the result of a call is held in memory while it cannot be recorded. The activities' time-outs allow for it. */
export const RECORD_DEADLINE_MS = 600_000;

/** Records the results of provider calls. */
export interface AttemptRecorder {
  /** Commits how attempts ended, and nothing else: no lock on another table can delay it. Tries again for ten minutes. */
  readonly record: (endings: readonly AttemptEnding[]) => Promise<void>;
  /** Whether a result waits in memory because it could not be recorded. Nothing may be claimed while it does. */
  readonly isBlocked: () => boolean;
}

/** @param pool with connections of its own: those that other statements use may all be waiting for a lock */
export function makeAttemptRecorder(pool: Pool, log: Logger, deadlineMs = RECORD_DEADLINE_MS): AttemptRecorder {
  const blocked = new Set<readonly AttemptEnding[]>();
  return {
    async record(endings) {
      const onFailure = (error: unknown): void => {
        if (blocked.size === 0) log.error({ err: error }, 'results cannot be recorded; nothing is sent until they are');
        blocked.add(endings);
      };
      try {
        await persist(() => endAttempts(pool, endings), deadlineMs, onFailure);
        if (blocked.delete(endings) && blocked.size === 0) log.info('results are recorded again');
      } finally {
        blocked.delete(endings);
      }
    },
    isBlocked: () => blocked.size > 0,
  };
}
