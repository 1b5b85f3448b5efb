import type { Feedback } from '../domain/feedback.ts';
import { groupBy } from '../domain/group.ts';
import { lockStatuses } from '../store/attempts.ts';
import { type Pool, transaction } from '../store/pool.ts';
import { project } from './emails.ts';

/**
 * Writes down what providers report, in one transaction: status, timeline, recipients, suppression and webhooks. What
 * was reported before, or is about an email that does not exist, changes nothing.
 */
export async function projectFeedback(pool: Pool, feedback: readonly Feedback[]): Promise<void> {
  await transaction(pool, async (client) => {
    // Two that change the same emails in several ways wait here, and not in a circle.
    await lockStatuses(
      client,
      feedback.map(({ emailId }) => emailId),
    );
    for (const [change, reports] of groupBy(feedback, (report) => report.change)) {
      await project(
        client,
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
  });
}
