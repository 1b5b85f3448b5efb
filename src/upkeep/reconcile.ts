import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { projectFeedback } from '../projection/feedback.ts';
import type { EmailProvider } from '../providers/email-provider.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findUnreported, scheduleNextCheck } from '../store/emails/stuck.ts';
import { STEP_DEADLINE_MS, toStep, type UpkeepStep } from './task.ts';

export interface ReconcileDeps {
  readonly pool: Pool;
  /** Fetches Postmark's reports of a message; undefined without a server token. */
  readonly askPostmark: EmailProvider['reports'] | undefined;
  /** The time between two requests, which spares Postmark's rate limit for other calls; 100 ms by default. */
  readonly requestIntervalMs?: number;
  readonly log: Logger;
}

const EMAILS_PER_STEP = 100;
const REQUEST_INTERVAL_MS = 100;

export function makeReconcileUpkeep(deps: ReconcileDeps) {
  return {
    /** Fetches reports of emails for which a report from Postmark is overdue. */
    async reconcileSent(): Promise<UpkeepStep> {
      const { askPostmark, requestIntervalMs = REQUEST_INTERVAL_MS } = deps;
      if (!askPostmark) return { done: 0, next: null };
      const emails = await findUnreported(deps.pool, EMAILS_PER_STEP);
      const asked: string[] = [];
      const deadline = performance.now() + STEP_DEADLINE_MS;
      let reports = 0;
      try {
        for (const { id, message_ids } of emails) {
          if (performance.now() > deadline) break;
          // Before the request: an email that fails must not block the others in the next step.
          asked.push(id);
          for (const messageId of message_ids) {
            const [emailReports] = await Promise.all([askPostmark(id, messageId), sleep(requestIntervalMs)]);
            reports += emailReports.length;
            await projectFeedback(deps.pool, emailReports);
          }
        }
      } finally {
        await scheduleNextCheck(deps.pool, asked);
        if (emails.length > 0) {
          const line = { emails: emails.length, asked: asked.length, reports };
          deps.log.info(line, 'fetched overdue reports from Postmark');
        }
      }
      return toStep(asked.length, EMAILS_PER_STEP, emails.length);
    },
  };
}
