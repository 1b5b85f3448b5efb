import type { Feedback } from '../domain/feedback.ts';
import { isUnreachable, type Pool } from '../store/pool.ts';
import { projectFeedback } from './feedback.ts';

/** Reports that are written together at most. */
const AT_ONCE = 200;
/** Transactions at a time: while one waits for its commit, the other is filled. */
const WRITERS = 2;

interface Waiting {
  readonly report: Feedback;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Writes down what providers report one by one, as `projectFeedback` does, but what arrives while others are being
 * written shares a transaction: a batch of 10,000 is reported in 10,000 callbacks. Each resolves when its own is
 * committed.
 */
export function gatherFeedback(pool: Pool): (report: Feedback) => Promise<void> {
  let waiting: Waiting[] = [];
  let writers = 0;

  const write = async (): Promise<void> => {
    writers++;
    while (waiting.length > 0) {
      const taken = waiting.slice(0, AT_ONCE);
      waiting = waiting.slice(AT_ONCE);
      await writeTogether(pool, taken);
    }
    writers--;
  };

  return (report) =>
    new Promise((resolve, reject) => {
      waiting.push({ report, done: resolve, failed: reject });
      if (writers < WRITERS) void write();
    });
}

/** Never rejects: each of them is told. One that cannot be written does not take the others along. */
async function writeTogether(pool: Pool, taken: readonly Waiting[]): Promise<void> {
  try {
    await projectFeedback(
      pool,
      taken.map(({ report }) => report),
    );
    for (const { done } of taken) done();
  } catch (error) {
    if (taken.length === 1 || isUnreachable(error)) for (const { failed } of taken) failed(error);
    else for (const each of taken) await writeTogether(pool, [each]);
  }
}
