import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BatchCounts, batchStatus } from '../../src/domain/email/batch.ts';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';

describe('the status of a batch (decisions 5)', () => {
  for (const [counts, status] of [
    [{ queued: 3 }, 'queued'],
    [{ scheduled: 3 }, 'queued'],
    [{ queued: 1, scheduled: 2 }, 'queued'],
    [{ queued: 2, sent: 1 }, 'processing'],
    [{ scheduled: 2, canceled: 1 }, 'processing'],
    [{ queued: 1, failed: 2 }, 'processing'],
    [{ sent: 1, canceled: 2 }, 'completed'],
    [{ failed: 3 }, 'completed'],
    [{ canceled: 3 }, 'canceled'],
  ] as const) {
    it(`${JSON.stringify(counts)}: ${status}`, () => assert.equal(batchStatus(3, counts), status));
  }

  it('is processing while one of two emails waits and the other one does not', () => {
    for (const status of EMAIL_STATUSES) {
      const counts: BatchCounts = { queued: 1 };
      counts[status] = (counts[status] ?? 0) + 1;
      assert.equal(batchStatus(2, counts), ['queued', 'scheduled'].includes(status) ? 'queued' : 'processing', status);
    }
  });
});
