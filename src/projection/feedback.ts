import type { Feedback } from '../domain/email/feedback.ts';
import type { EmailChangeInput } from '../store/emails/changes.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { projectChanges } from './emails.ts';

/**
 * Applies providers' reports atomically: status, timeline, recipients, suppressions and webhooks. Repeated reports, and reports
 * of unknown emails, change nothing.
 * @returns the reports whose evidence does not match their email; they were not applied
 */
export async function projectFeedback(pool: Pool, feedback: readonly Feedback[]): Promise<readonly Feedback[]> {
  const reports = new Map(feedback.map((report) => [toChange(report), report]));
  const changes = [...reports].map(([input, { change }]) => ({ change, input }));
  const { refused } = await projectChanges(pool, changes);
  return refused.map((input) => reports.get(input) as Feedback);
}

function toChange({ emailId, recipient, dedupeKey, error, bounceReason, link, evidence }: Feedback): EmailChangeInput {
  return {
    id: emailId,
    recipient: recipient.toLowerCase(),
    dedupe_key: dedupeKey,
    ...(error !== undefined && { error }),
    ...(bounceReason && { bounce_reason: bounceReason }),
    ...(link !== undefined && { link }),
    ...(evidence && { evidence }),
  };
}
