import type { EmailStatus } from './email.ts';

/** Where a batch stands. */
export const BATCH_STATUSES = [
  /** Accepted; every member waits. */
  'queued',
  /** At least one member was sent or has ended, a canceled one included; at least one still waits. */
  'processing',
  /** No member waits any more. Says nothing about what became of them: `counts` does. */
  'completed',
  /** Every member was canceled. */
  'canceled',
] as const;
export type BatchStatus = (typeof BATCH_STATUSES)[number];

/** Statuses of members that wait: for their time, for a worker, or between two attempts. */
export const WAITING = ['queued', 'scheduled'] as const satisfies readonly EmailStatus[];

/** How many members are in each status that occurs. */
export type BatchCounts = Partial<Record<EmailStatus, number>>;

/** A batch's status follows from its members'. */
export function batchStatus(total: number, counts: BatchCounts): BatchStatus {
  const waiting = WAITING.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  if (waiting === total) return 'queued';
  if (waiting > 0) return 'processing';
  return counts.canceled === total ? 'canceled' : 'completed';
}
