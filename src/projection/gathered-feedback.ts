import type { Feedback } from '../domain/email/feedback.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { projectFeedback } from './feedback.ts';

/** Reports that are written together at most. */
const AT_ONCE = 200;

/**
 * Writes down what providers report one by one, as `projectFeedback` does, but what arrives while others are being
 * written shares a transaction: a batch of 10,000 is reported in 10,000 callbacks. Each resolves when its own is
 * committed, to whether it was accepted: false when its claim does not fit the email that it names.
 */
export function gatherFeedback(pool: Pool): (report: Feedback) => Promise<boolean> {
  return gather(async (reports) => {
    const refused = new Set(await projectFeedback(pool, reports));
    return reports.map((report) => !refused.has(report));
  }, AT_ONCE);
}
