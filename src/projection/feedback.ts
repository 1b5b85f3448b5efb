import type { Feedback, FeedbackChange } from '../domain/email/feedback.ts';
import { groupBy } from '../lib/group.ts';
import { lockStatuses } from '../store/emails/attempts.ts';
import type { Change } from '../store/emails/changes.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { projectClaims } from './emails.ts';

/**
 * Applies providers' reports atomically: status, timeline, recipients, suppressions and webhooks. Repeated reports, and reports
 * of unknown emails, change nothing.
 * @returns the reports whose claim does not match their email; they were not applied
 */
export async function projectFeedback(pool: Pool, feedback: readonly Feedback[]): Promise<readonly Feedback[]> {
  const changes = groupBy(feedback, (report) => report.change);
  return transaction(pool, async (client) => {
    if (changes.size > 1) {
      // Locks all emails first, in order: concurrent reports would otherwise deadlock.
      await lockStatuses(
        client,
        feedback.map(({ emailId }) => emailId),
      );
    }
    const refused: Feedback[] = [];
    for (const [change, reports] of changes) refused.push(...(await projectChange(client, change, reports)));
    return refused;
  });
}

async function projectChange(
  db: Db,
  change: FeedbackChange,
  reports: readonly Feedback[],
): Promise<readonly Feedback[]> {
  const changes = new Map<Change, Feedback>(reports.map((report) => [toChange(report), report]));
  const { refused } = await projectClaims(db, change, [...changes.keys()]);
  return refused.map((each) => changes.get(each) as Feedback);
}

function toChange({ emailId, recipient, dedupeKey, error, bounceReason, link, claim }: Feedback): Change {
  return {
    id: emailId,
    recipient: recipient.toLowerCase(),
    dedupe_key: dedupeKey,
    ...(error !== undefined && { error }),
    ...(bounceReason && { bounce_reason: bounceReason }),
    ...(link !== undefined && { link }),
    ...(claim && { claim }),
  };
}
