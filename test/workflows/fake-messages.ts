import { ApplicationFailure } from '@temporalio/activity';
import type { Delivery, EmailActivities, MessageActivities } from '../../activities/index.ts';
import type { AttemptLimit } from '../../activities/temporal.ts';
import type { DeliveryStatus, Member, MemberResult } from '../../src/delivery/contract.ts';
import { hasReachedLimit } from '../../src/delivery/endings.ts';

/** One message as Postgres would hold it. */
interface Row {
  status: DeliveryStatus;
  version: number;
  /** Unix milliseconds of Temporal's clock. */
  dueAt: number;
  attempts: number;
  sentAt?: number;
}

/**
 * Stands for Postgres and the provider in workflow tests: the same rules as the activities' SQL, over a map, on the
 * time-skipping server's clock.
 */
export class FakeMessages {
  readonly rows = new Map<string, Row>();
  /** What happens at each attempt; "take" when there is none left. Only a suspension comes before the claim. */
  readonly answers: (
    'take' | 'busy' | { busyFor: number } | { pausedFor: number } | { suspendedFor: number } | 'crash'
  )[] = [];
  readonly now: () => Promise<number>;
  /** Runs inside an attempt, before the claim. */
  beforeClaim: (id: string) => void = () => undefined;
  /** Runs inside an attempt, after the claim returned that the message is not due. */
  afterEarlyClaim: (id: string) => Promise<void> = async () => undefined;
  /** Runs inside an attempt, after the provider took the message. */
  afterSend: (id: string) => Promise<void> = async () => undefined;

  constructor(now: () => Promise<number>) {
    this.now = now;
  }

  accept(id: string, dueAt: number | null): void {
    this.rows.set(id, { status: dueAt === null ? 'queued' : 'scheduled', version: 0, dueAt: dueAt ?? 0, attempts: 0 });
  }

  /** What the API does; answers as it would. */
  reschedule(id: string, dueAt: number): boolean {
    const row = this.row(id);
    if (row.status !== 'scheduled') return false;
    row.dueAt = dueAt;
    row.version++;
    return true;
  }

  cancel(id: string): boolean {
    const row = this.row(id);
    if (row.status !== 'scheduled') return false;
    row.status = 'canceled';
    return true;
  }

  row(id: string): Row {
    const row = this.rows.get(id);
    if (!row) throw new Error(`no message ${id}`);
    return row;
  }

  private readonly steps = {
    attempt: async ({ id, version: requested }: Member): Promise<MemberResult> => {
      this.beforeClaim(id);
      const row = this.row(id);
      const now = await this.now();
      if (row.status === 'scheduled' && (row.version !== requested || row.dueAt > now)) {
        const { version, dueAt } = row;
        await this.afterEarlyClaim(id);
        return { id, state: 'waiting', version, dueAt: new Date(dueAt).toISOString(), inMs: Math.max(0, dueAt - now) };
      }
      if (row.status !== 'queued' && row.status !== 'scheduled') return { id, state: 'ended', status: row.status };
      const answer = this.answers.shift() ?? 'take';
      if (typeof answer === 'object' && 'suspendedFor' in answer)
        return { id, state: 'again', reason: 'suspended', afterMs: answer.suspendedFor, postponed: true };
      row.status = 'queued';
      if (answer === 'crash') throw new Error('the database is away');
      if (typeof answer === 'object' && 'pausedFor' in answer)
        return { id, state: 'again', reason: 'paused', afterMs: answer.pausedFor, postponed: true };
      row.attempts++;
      if (answer === 'take') {
        row.status = 'sent';
        row.sentAt = now;
        await this.afterSend(id);
        return { id, state: 'ended', status: 'sent', provider: 'postmark' };
      }
      const failures = row.attempts;
      return { id, state: 'again', reason: 'busy', failures, ...(answer !== 'busy' && { afterMs: answer.busyFor }) };
    },
    deliver: async ({ maximumAttempts, ...member }: Member & AttemptLimit): Promise<Delivery> => {
      const result = await this.steps.attempt(member);
      if (result.state !== 'again') return result;
      const { reason: message, afterMs } = result;
      throw ApplicationFailure.create({
        type: 'NotAccepted',
        message,
        nonRetryable: hasReachedLimit(result, maximumAttempts),
        ...(afterMs !== undefined && { nextRetryDelay: afterMs }),
      });
    },
    giveUp: async ({ id, maximumAttempts }: { id: string; maximumAttempts: number }) => {
      const row = this.row(id);
      if (row.status === 'queued' && row.attempts >= maximumAttempts) row.status = 'failed';
      return row.status;
    },
    cancel: async ({ id }: { id: string }) => {
      this.cancel(id);
      return this.row(id).status;
    },
  };

  readonly activities: EmailActivities = {
    attemptEmail: this.steps.attempt,
    deliverEmail: this.steps.deliver,
    giveUpEmail: this.steps.giveUp,
    cancelEmail: this.steps.cancel,
  };

  readonly messageActivities: MessageActivities = {
    attemptChat: this.steps.attempt,
    deliverChat: this.steps.deliver,
    giveUpChat: this.steps.giveUp,
    cancelChat: this.steps.cancel,
    attemptSms: this.steps.attempt,
    deliverSms: this.steps.deliver,
    giveUpSms: this.steps.giveUp,
    cancelSms: this.steps.cancel,
  };
}
