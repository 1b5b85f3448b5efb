import type { EmailStatus } from './email.ts';

export const BATCH_STATUSES = [
  /** Accepted; every member is pending. */
  'queued',
  /** At least one member was sent or has ended (including canceled), and at least one is pending. */
  'processing',
  /** No member is pending. `counts` contains the results. */
  'completed',
  /** Every member was canceled. */
  'canceled',
] as const;
export type BatchStatus = (typeof BATCH_STATUSES)[number];

/** Statuses of pending members: for a worker, for the next attempt, or until they are due. */
export const PENDING_STATUSES = ['queued', 'scheduled'] as const satisfies readonly EmailStatus[];

export type BatchCounts = Partial<Record<EmailStatus, number>>;

export function batchStatus(total: number, counts: BatchCounts): BatchStatus {
  const pending = PENDING_STATUSES.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  if (pending === total) return 'queued';
  if (pending > 0) return 'processing';
  return counts.canceled === total ? 'canceled' : 'completed';
}
