import { Context } from '@temporalio/activity';
import type { DeliveryDeps } from '../src/delivery/contract.ts';
import type { EmailDeps } from '../src/delivery/email/contract.ts';
import { emailGroups } from '../src/delivery/email/group.ts';
import { cancelScheduled } from '../src/delivery/endings.ts';
import {
  attemptGroup,
  giveUpMembers,
  type Group,
  type GroupChannel,
  type GroupDelivery,
} from '../src/delivery/group.ts';
import type { MessageDeps } from '../src/delivery/messages/contract.ts';
import { makeMessageGroups } from '../src/delivery/messages/group.ts';
import type { MessageChannel } from '../src/domain/messages/message.ts';
import { type AttemptLimit, notAccepted, retryDelayMs, withHeartbeat } from './temporal.ts';

/** A group as its workflow names it. */
interface GroupInput extends Group {
  /** Missing for emails. */
  readonly channel?: MessageChannel;
}

/** The activities of groups of emails, of the fleet `email`. */
export function makeGroupActivities(deps: EmailDeps) {
  const emails = emailGroups(deps);
  return makeActivities(deps, () => emails);
}
export type GroupActivities = ReturnType<typeof makeGroupActivities>;

/**
 * The activities of groups of chat-app messages and SMS, of the fleet `chat`.
 * @returns those for each of its task queues
 */
export function makeMessageGroupActivities(deps: MessageDeps): Record<'chat-bursts' | 'chat-groups', GroupActivities> {
  const { bursts, late } = makeMessageGroups(deps);
  return { 'chat-bursts': makeActivities(deps, bursts), 'chat-groups': makeActivities(deps, late) };
}

/** Each does one thing and may be repeated. */
function makeActivities(deps: DeliveryDeps, groupsOf: (channel: MessageChannel | undefined) => GroupChannel) {
  return {
    /**
     * Sends the messages of a group that are due.
     * @throws ApplicationFailure of type NotAccepted when some should be retried together, or all be given up
     */
    deliverGroup: ({ maximumAttempts, channel, ...group }: GroupInput & AttemptLimit): Promise<GroupDelivery> =>
      withHeartbeat(async () => {
        const { cancellationSignal } = Context.current();
        const { delivery, remaining } = await attemptGroup(
          deps,
          groupsOf(channel),
          group,
          maximumAttempts,
          cancellationSignal,
          (result) => retryDelayMs(deps, result),
        );
        if (remaining) throw notAccepted(remaining.reason, remaining.isUsedUp, remaining.waitMs);
        return delivery;
      }),

    /** Ends those messages of a group whose attempts are used up: they fail with their last answers. */
    async giveUpGroup({
      id,
      members,
      channel,
      maximumAttempts,
    }: GroupInput & { maximumAttempts: number }): Promise<void> {
      const ids = members.map((member) => member.id);
      const groups = groupsOf(channel);
      await giveUpMembers(deps, groups, id, ids, maximumAttempts);
      await groups.onEnded(ids);
    },

    /** Cancels those messages of a group that are still scheduled and still belong to it. */
    async cancelGroup({ id, members, channel }: GroupInput): Promise<void> {
      const ids = members.map((member) => member.id);
      await cancelScheduled(deps, groupsOf(channel).endings, ids, id);
    },
  };
}
