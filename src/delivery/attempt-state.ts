import type { Attempt } from '../store/emails/attempts.ts';
import type { DeliveryStatus, Member, MemberResult } from './contract.ts';

/** Returns true if the outcome of an attempt is unknown: its worker died, or the provider did not answer. */
export function isAmbiguous(attempt: Attempt): boolean {
  return attempt.outcome === null || attempt.outcome === 'unknown';
}

/** Returns true if the provider accepted the message or refused it permanently. */
export function hasFinalOutcome({ outcome }: Attempt): boolean {
  return outcome === 'sent' || outcome === 'refused';
}

/** What decides whether a locked message may be claimed. */
export interface Claimable {
  readonly id: string;
  readonly status: DeliveryStatus;
  readonly schedule_version: number;
  readonly scheduled_at: string | null;
  /** Milliseconds until it is due by the database's clock; 0 when it is. */
  readonly due_in: number;
  readonly provider: string | null;
  /** The workflow that delivers it. */
  readonly workflow_id: string;
  /** Whether it is a marketing email of which copies are still to be sent. */
  readonly copies_left: boolean;
}

/** The result of a message that may not be claimed for this member now; undefined if it may. */
export function unclaimableResult(message: Claimable, { id, version, workflowId }: Member): MemberResult | undefined {
  const { status, schedule_version, scheduled_at, due_in, provider, workflow_id, copies_left } = message;
  // Another workflow delivers it now.
  if (workflow_id !== (workflowId ?? id)) return { id, state: 'ended', status };
  if (status === 'scheduled') {
    if (schedule_version === version && due_in === 0) return undefined;
    return { id, state: 'waiting', version: schedule_version, dueAt: scheduled_at as string, inMs: due_in };
  }
  // This version was claimed before by another run of its workflow.
  if ((status === 'queued' || copies_left) && schedule_version === version) return undefined;
  return { id, state: 'ended', status, ...(provider !== null && { provider }) };
}
