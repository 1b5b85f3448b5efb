import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { projectFeedback } from '../projection/feedback.ts';
import type { EmailProvider } from '../providers/email-provider.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findUnreported, noteLooks } from '../store/emails/stuck.ts';
import type { UpkeepStep } from './task.ts';

/** What it takes to find out about stuck emails. */
export interface ReconcileDeps {
  readonly pool: Pool;
  /** Asks Postmark what it has to tell about a message; undefined where it is not set up. */
  readonly askPostmark: EmailProvider['reports'] | undefined;
  /** Milliseconds between two questions, so that nobody else's calls to Postmark suffer from ours; 100 by default. */
  readonly pace?: number;
  readonly log: Logger;
}

/** Questions of one step. */
const QUESTIONS = 100;
const PACE = 100;

/** The maintenance task that asks for reports of the provider that were lost on the way. */
export function makeReconcileActivities(deps: ReconcileDeps) {
  return {
    /** Asks Postmark about emails of which it should have reported more by now, and notes what it says. */
    async reconcileSent(): Promise<UpkeepStep> {
      const { askPostmark, pace = PACE } = deps;
      if (!askPostmark) return { done: 0, next: null };
      const emails = await findUnreported(deps.pool, QUESTIONS);
      const asked: string[] = [];
      let reports = 0;
      try {
        for (const { id, message_ids } of emails) {
          // Also one that cannot be asked about: it shall not stand in the way of the others the next time.
          asked.push(id);
          for (const messageId of message_ids) {
            const [found] = await Promise.all([askPostmark(id, messageId), sleep(pace)]);
            reports += found.length;
            await projectFeedback(deps.pool, found);
          }
        }
      } finally {
        await noteLooks(deps.pool, asked);
        if (emails.length > 0) {
          const line = { emails: emails.length, asked: asked.length, reports };
          deps.log.info(line, 'asked Postmark about emails that it had not reported');
        }
      }
      return { done: asked.length, next: emails.length === QUESTIONS ? '' : null };
    },
  };
}
