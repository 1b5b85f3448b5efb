import type { Feedback, FeedbackChange } from '../domain/feedback.ts';
import { groupBy } from '../domain/group.ts';
import { lockStatuses } from '../store/attempts.ts';
import { type Db, type Pool, transaction } from '../store/pool.ts';
import { isOneStatement, project } from './emails.ts';

/**
 * Writes down what providers report, all of it or nothing: status, timeline, recipients, suppression and webhooks. What
 * was reported before, or is about an email that does not exist, changes nothing.
 */
export async function projectFeedback(pool: Pool, feedback: readonly Feedback[]): Promise<void> {
  const [first, ...others] = groupBy(feedback, (report) => report.change);
  if (!first) return;
  if (others.length === 0 && isOneStatement(first[0])) {
    await projectChange(pool, ...first);
    return;
  }
  await transaction(pool, async (client) => {
    // Two that change the same emails in several ways wait here, and not in a circle.
    await lockStatuses(
      client,
      feedback.map(({ emailId }) => emailId),
    );
    for (const [change, reports] of [first, ...others]) await projectChange(client, change, reports);
  });
}

async function projectChange(db: Db, change: FeedbackChange, reports: readonly Feedback[]): Promise<void> {
  await project(
    db,
    change,
    reports.map(({ emailId, recipient, dedupeKey, error, bounceReason, link }) => ({
      id: emailId,
      recipient: recipient.toLowerCase(),
      dedupe_key: dedupeKey,
      ...(error !== undefined && { error }),
      ...(bounceReason && { bounce_reason: bounceReason }),
      ...(link !== undefined && { link }),
    })),
  );
}
