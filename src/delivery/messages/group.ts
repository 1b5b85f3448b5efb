import type { MessageChannel } from '../../domain/messages/message.ts';
import { mapConcurrently } from '../../lib/map-concurrently.ts';
import { makeSemaphore } from '../../lib/semaphore.ts';
import { type GroupedMessage, readGroupedMessages } from '../../store/messages/delivery.ts';
import { type AgainResult, type Member, type MemberResult, postponed } from '../contract.ts';
import { type GroupChannel, notAttempted, type Stopping, takeTurns } from '../group.ts';
import { messageChannel } from './channel.ts';
import { deliverMessage } from './deliver.ts';
import type { MessageDeps } from './contract.ts';

/**
 * Members of all groups that a worker delivers at a time, those of one organization beside others, and those of one organization alone.
 * A number at its rate limit lets its members wait for up to 0.6 s, and so delays a message with a workflow of its own by no more.
 */
const MAX_CONCURRENT = { all: 64, share: 24, alone: 48 };
/** Members of one group at a time. */
const MAX_CONCURRENT_OF_GROUP = 24;
/**
 * Messages that are due just now are claimed for this long. After that, the rest of the group waits in the outbox with those that are
 * late, and leaves its activity slot, and the rate of its number, to messages that are due after it.
 */
const BURST_DEADLINE_MS = 2_000;
/** The activity of a group may take an hour. */
const LATE_DEADLINE_MS = 30 * 60_000;
/** A number of which so many messages in a row were not accepted is left alone until the next attempt of the group. */
const MAX_REFUSALS = 5;

/** Groups of chat-app messages and SMS, which are sent by a provider call each: those due just now, and those that are late. */
export function makeMessageGroups(deps: MessageDeps) {
  const slots = makeSemaphore(MAX_CONCURRENT.all, MAX_CONCURRENT.share, MAX_CONCURRENT.alone);

  /** Sends the members, numbers by turns. */
  async function deliver(
    channel: MessageChannel,
    members: readonly Member[],
    stopping: Stopping,
  ): Promise<MemberResult[]> {
    const ofGroup = { ...deps, stopping };
    const messages = await readGroupedMessages(
      deps.pool,
      members.map(({ id }) => id),
    );
    const byId = new Map(messages.map((message) => [message.id, message]));
    const refusals = makeRefusals();
    const inTurns = takeTurns(members, ({ id }) => byId.get(id)?.number_id);
    return mapConcurrently(inTurns, MAX_CONCURRENT_OF_GROUP, async (member) => {
      const message = byId.get(member.id);
      if (message && !message.is_open) return endedResult(message);
      const refused = refusals.last(message?.number_id);
      if (refused) return notAttempted(member.id, refused);
      const release = await slots.take(1, { holder: message?.org_id });
      try {
        if (stopping.aborted) return postponed(member.id, 'Its group leaves the worker to others.', 0);
        const result = await deliverMessage(ofGroup, messageChannel(ofGroup, channel), member);
        refusals.record(message?.number_id, result);
        return result;
      } finally {
        release();
      }
    });
  }

  const groups =
    (claimDeadlineMs: number) =>
    /** @param channel named by the workflow of each group of messages */
    (channel: MessageChannel = 'chatapp'): GroupChannel => ({
      endings: messageChannel(deps, channel),
      table: 'chat_messages',
      claimDeadlineMs,
      deliver: (members, stopping) => deliver(channel, members, stopping),
      onEnded: () => Promise.resolve(),
    });
  return { bursts: groups(BURST_DEADLINE_MS), late: groups(LATE_DEADLINE_MS) };
}

function endedResult({ id, status, provider }: GroupedMessage): MemberResult {
  return { id, state: 'ended', status, ...(provider !== null && { provider }) };
}

/** Counts for each number the messages in a row that were not accepted. */
function makeRefusals() {
  const counts = new Map<string | undefined, number>();
  const last = new Map<string | undefined, AgainResult>();
  return {
    record(number: string | undefined, result: MemberResult): void {
      counts.set(number, result.state === 'again' ? (counts.get(number) ?? 0) + 1 : 0);
      if (result.state === 'again') last.set(number, result);
    },
    /** Returns the last result of a number that is to be left alone. */
    last: (number: string | undefined) => ((counts.get(number) ?? 0) >= MAX_REFUSALS ? last.get(number) : undefined),
  };
}
