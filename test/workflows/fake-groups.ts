import { ApplicationFailure } from '@temporalio/activity';
import type { GroupActivities, GroupDelivery } from '../../activities/index.ts';
import type { FakeMessages } from './fake-messages.ts';

/**
 * Stands for Postgres and the provider in workflow tests of groups, over the emails of a `FakeMessages`: the same rules as
 * the activities' SQL.
 */
export class FakeGroups {
  readonly emails: FakeMessages;
  /** Which workflow delivers an email, when that is not its own. */
  readonly groupOf = new Map<string, string>();
  /** What the provider does with the emails of each call: takes all, none, or all but these. */
  readonly answers: ('take' | 'busy' | { but: readonly string[] } | 'crash')[] = [];
  /** Milliseconds that the database's clock is behind Temporal's. */
  behind = 0;
  /** How many more times it answers that all emails are due at another version. */
  mismatches = 0;
  /** How many calls the provider got. */
  calls = 0;
  /** The channel that each attempt named. */
  readonly channels: (string | undefined)[] = [];

  constructor(emails: FakeMessages) {
    this.emails = emails;
  }

  accept(group: string, ids: readonly string[], dueAt: number | null): void {
    for (const id of ids) {
      this.emails.accept(id, dueAt);
      this.groupOf.set(id, group);
    }
  }

  readonly activities: GroupActivities = {
    deliverGroup: async ({ id: group, members, channel, maximumAttempts = Infinity }): Promise<GroupDelivery> => {
      this.channels.push(channel);
      const answer = this.answers.shift() ?? 'take';
      if (answer === 'crash') throw new Error('the database is away');
      const now = (await this.emails.now()) - this.behind;
      const counts: Record<string, number> = {};
      const early: (typeof members)[number][] = [];
      let busy = 0;
      if (this.mismatches-- > 0) return { counts, providers: [], early: { members: [...members], inMs: 0 } };
      this.calls++;
      for (const member of members) {
        const { id } = member;
        const row = this.emails.row(id);
        const isMember = this.groupOf.get(id) === group;
        if (isMember && row.status === 'scheduled' && row.dueAt > now) early.push(member);
        else if (isMember && (row.status === 'scheduled' || row.status === 'queued')) {
          row.status = 'queued';
          row.attempts++;
          if (answer === 'busy') busy++;
          else if (typeof answer === 'object' && answer.but.includes(id)) {
            this.groupOf.delete(id);
            counts['detached'] = (counts['detached'] ?? 0) + 1;
          } else {
            row.status = 'sent';
            row.sentAt = now;
          }
        }
        if (row.status === 'sent' || !isMember || row.status === 'failed' || row.status === 'canceled') {
          counts[row.status] = (counts[row.status] ?? 0) + 1;
        }
      }
      if (busy > 0) {
        const nonRetryable = members.every(({ id }) => this.emails.row(id).attempts >= maximumAttempts);
        throw ApplicationFailure.create({ type: 'NotAccepted', message: `${busy} were not taken`, nonRetryable });
      }
      const inMs = Math.max(0, ...early.map(({ id }) => this.emails.row(id).dueAt - now));
      return { counts, providers: ['postmark'], ...(early.length > 0 && { early: { members: early, inMs } }) };
    },
    giveUpGroup: async ({ members, maximumAttempts }) => {
      for (const { id } of members) {
        const row = this.emails.row(id);
        if (row.status === 'queued' && row.attempts >= maximumAttempts) row.status = 'failed';
      }
    },
    cancelGroup: async ({ members }) => {
      for (const { id } of members) this.emails.cancel(id);
    },
  };
}
