import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageChannel } from '../../domain/messages/message.ts';
import { mapConcurrently } from '../../lib/map-concurrently.ts';
import { makeSemaphore } from '../../lib/semaphore.ts';
import { type GroupedMessage, readGroupedMessages } from '../../store/messages/delivery.ts';
import { type AgainResult, type Member, type MemberResult, postponed } from '../contract.ts';
import { type GroupChannel, notAttempted, type Stopping, takeTurns } from '../group.ts';
import { messageChannel } from './channel.ts';
import { deliverMessage } from './deliver.ts';
import type { MessageDeps } from './contract.ts';

/** Members of all groups that a worker delivers at a time, those of one organization beside others, and those of one alone. */
const MAX_CONCURRENT = { all: 64, share: 24, alone: 48 };
/** Members of one group at a time. */
const MAX_CONCURRENT_OF_GROUP = 24;

/** The time that a kind of group has. */
interface GroupTimes {
  /** See `GroupChannel`. */
  readonly claimDeadlineMs: number;
  /**
   * How far ahead its members reserve slots of a number at its rate limit. A message with a workflow of its own, whose slot is the next
   * one, waits for no longer.
   */
  readonly maxAheadMs: number;
}

/**
 * Messages that became due just now precede those that are late, also at the rate limit of their number. What is not sent after two
 * seconds waits in the outbox with those that are late, and leaves its activity slot to what becomes due after it.
 */
const BURST: GroupTimes = { claimDeadlineMs: 2_000, maxAheadMs: 600 };
/** The activity of a group may take an hour. */
const LATE: GroupTimes = { claimDeadlineMs: 30 * 60_000, maxAheadMs: 200 };
/** While a number has no slot within that time, it is looked at this often. */
const SLOT_CHECK_INTERVAL_MS = 50;
/** A number of which so many messages in a row were not accepted is left alone until the next attempt of the group. */
const MAX_REFUSALS = 5;

/** Groups of chat-app messages and SMS, which are sent by a provider call each: those due just now, and those that are late. */
export function makeMessageGroups(deps: MessageDeps) {
  const slots = makeSemaphore(MAX_CONCURRENT.all, MAX_CONCURRENT.share, MAX_CONCURRENT.alone);

  /** Sends the members, numbers by turns. */
  async function deliver(
    channel: MessageChannel,
    { maxAheadMs }: GroupTimes,
    members: readonly Member[],
    stopping: Stopping,
  ): Promise<MemberResult[]> {
    const ofGroup = { ...deps, stopping };
    const ofKind = messageChannel(ofGroup, channel);
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
      if (message) await waitForSlot(deps, message, maxAheadMs, stopping);
      const release = await slots.take(1, { holder: message?.org_id });
      try {
        if (stopping.aborted) return postponed(member.id, 'Its group leaves the worker to others.', 0);
        const result = await deliverMessage(ofGroup, ofKind, member);
        refusals.record(message?.number_id, result);
        return result;
      } finally {
        release();
      }
    });
  }

  const groups =
    (times: GroupTimes) =>
    /** @param channel named by the workflow of each group of messages */
    (channel: MessageChannel = 'chatapp'): GroupChannel => ({
      endings: messageChannel(deps, channel),
      table: 'chat_messages',
      claimDeadlineMs: times.claimDeadlineMs,
      deliver: (members, stopping) => deliver(channel, times, members, stopping),
      onEnded: () => Promise.resolve(),
    });
  return { bursts: groups(BURST), late: groups(LATE) };
}

/** Waits until a message's number may send it: the claim then finds its slot due. */
async function waitForSlot(
  { pace }: MessageDeps,
  { id, number_id: number }: GroupedMessage,
  maxAheadMs: number,
  stopping: Stopping,
): Promise<void> {
  while (!stopping.aborted) {
    const { isReserved, waitMs } = pace.reserveAhead(number, id, maxAheadMs);
    await sleep(isReserved ? waitMs : Math.min(waitMs - maxAheadMs, SLOT_CHECK_INTERVAL_MS));
    if (isReserved) return;
  }
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
