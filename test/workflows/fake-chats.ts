import { ApplicationFailure } from '@temporalio/activity';
import type { ChatActivities, ChatDelivery } from '../../activities/index.ts';
import type { ChatStatus } from '../../src/domain/chat/chat.ts';

/** One message as Postgres would hold it. */
interface Row {
  status: ChatStatus;
  attempts: number;
  /** Unix milliseconds of Temporal's clock. */
  sentAt?: number;
}

/** Stands for Postgres and the provider in workflow tests of chat-app messages, over a map, on the server's clock. */
export class FakeChats {
  readonly rows = new Map<string, Row>();
  /** What the provider does at each attempt; "take" when there is none left. */
  readonly answers: ('take' | 'busy' | 'refuse' | { busyFor: number } | 'crash')[] = [];
  readonly now: () => Promise<number>;
  /** Runs inside an attempt, before anything else. */
  before: (id: string) => Promise<void> = async () => undefined;

  constructor(now: () => Promise<number>) {
    this.now = now;
  }

  row(id: string): Row {
    const row = this.rows.get(id) ?? { status: 'queued' as const, attempts: 0 };
    this.rows.set(id, row);
    return row;
  }

  readonly activities: ChatActivities = {
    deliverChat: async ({ id }): Promise<ChatDelivery> => {
      await this.before(id);
      const row = this.row(id);
      if (row.status !== 'queued') return { state: 'ended', status: row.status };
      const answer = this.answers.shift() ?? 'take';
      if (answer === 'crash') throw new Error('the database is away');
      row.attempts++;
      if (answer === 'take' || answer === 'refuse') {
        row.status = answer === 'take' ? 'sent' : 'failed';
        row.sentAt = await this.now();
        return { state: 'ended', status: row.status, provider: 'twilio' };
      }
      throw ApplicationFailure.create({
        type: 'NotTaken',
        message: 'busy',
        ...(answer !== 'busy' && { nextRetryDelay: answer.busyFor }),
      });
    },
    giveUpChat: async ({ id, maximumAttempts }) => {
      const row = this.row(id);
      if (row.status === 'queued' && row.attempts >= maximumAttempts) row.status = 'failed';
      return row.status;
    },
  };
}
