import type { Feedback } from '../domain/email/feedback.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { projectFeedback } from './feedback.ts';

const MAX_REPORTS_PER_TRANSACTION = 200;

/**
 * Applies single reports like `projectFeedback`. Reports that arrive while others are being written share a transaction, since a
 * batch of 10,000 is reported in 10,000 callbacks. Each call resolves after its commit: true if the report was accepted, false
 * if its evidence does not match its email.
 */
export function gatherFeedback(pool: Pool): (report: Feedback) => Promise<boolean> {
  return gather(async (reports) => {
    const refused = new Set(await projectFeedback(pool, reports));
    return reports.map((report) => !refused.has(report));
  }, MAX_REPORTS_PER_TRANSACTION);
}
