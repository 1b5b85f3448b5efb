import type { ChannelEndings, DeliveryDeps, DeliveryStatus, Member, MemberResult } from '../src/delivery/contract.ts';
import { publishCompletedBatches } from '../src/delivery/email/completed-batches.ts';
import { emailChannel } from '../src/delivery/email/channel.ts';
import type { EmailDeps } from '../src/delivery/email/contract.ts';
import { deliverEmails } from '../src/delivery/email/deliver.ts';
import { cancelScheduled, endedAs, giveUp, hasReachedLimit, isPending } from '../src/delivery/endings.ts';
import { KIND_NAMES, logId } from '../src/delivery/log-names.ts';
import { messageChannel } from '../src/delivery/messages/channel.ts';
import type { MessageDeps } from '../src/delivery/messages/contract.ts';
import { deliverMessage } from '../src/delivery/messages/deliver.ts';
import type { MessageChannel } from '../src/domain/messages/message.ts';
import { type AttemptLimit, notAccepted, retryDelayMs, withHeartbeat } from './temporal.ts';

/** The activities of the fleet `email`. */
export function makeEmailActivities(deps: EmailDeps) {
  const email = makeDeliveryActivities(deps, emailChannel(deps), {
    deliver: (member) => deliverEmails(deps, [member]),
    onEnded: (ids) => publishCompletedBatches(deps, ids),
  });
  return {
    attemptEmail: email.attempt,
    deliverEmail: email.deliver,
    giveUpEmail: email.giveUp,
    cancelEmail: email.cancel,
  };
}
export type EmailActivities = ReturnType<typeof makeEmailActivities>;

/** The activities of the fleet `chat`: chat-app messages and SMS. */
export function makeMessageActivities(deps: MessageDeps) {
  const activitiesOf = (kind: MessageChannel) => {
    const channel = messageChannel(deps, kind);
    return makeDeliveryActivities(deps, channel, {
      // Tasks of versions before schedules have no `version`.
      deliver: async ({ id, version = 0 }: Partial<Member> & { id: string }) => [
        await deliverMessage(deps, channel, { id, version }),
      ],
    });
  };
  const [chat, sms] = [activitiesOf('chatapp'), activitiesOf('sms')];
  return {
    attemptChat: chat.attempt,
    deliverChat: chat.deliver,
    giveUpChat: chat.giveUp,
    cancelChat: chat.cancel,
    attemptSms: sms.attempt,
    deliverSms: sms.deliver,
    giveUpSms: sms.giveUp,
    cancelSms: sms.cancel,
  };
}
export type MessageActivities = ReturnType<typeof makeMessageActivities>;

/** The result of an attempt that was not refused for now. */
export type Delivery = Exclude<MemberResult, { state: 'again' }>;

/** Before a wait of at least this time, upkeep's next check of the message is postponed. */
const LONG_WAIT_MS = 60_000;

/** The steps that each channel has of its own. */
interface Steps {
  readonly deliver: (member: Member) => Promise<readonly MemberResult[]>;
  /** Called when a message may have ended. Never rejects. */
  readonly onEnded?: (ids: readonly string[]) => Promise<void>;
}

/** The activities of a single message of one channel. Each does one thing and may be repeated. */
function makeDeliveryActivities(
  deps: DeliveryDeps,
  channel: ChannelEndings,
  { deliver, onEnded = () => Promise.resolve() }: Steps,
) {
  async function attempt(member: Member): Promise<MemberResult> {
    const [result] = await deliver(member);
    if (!result) throw new Error('a delivery returned no result');
    if (result.state === 'ended') await onEnded([member.id]);
    return result;
  }

  /**
   * Fails a message whose attempts are used up, with the last answer. Returns `queued` or `scheduled` if attempts remain,
   * since not every failed activity reached a provider.
   */
  async function giveUpMessage({
    id,
    maximumAttempts,
  }: {
    id: string;
    maximumAttempts: number;
  }): Promise<DeliveryStatus> {
    const status = (await giveUp(deps, channel, [id], maximumAttempts, id)).get(id) ?? 'canceled';
    const { kind } = channel;
    if (!isPending(status))
      deps.log.warn({ ...logId(kind, id), status, maximumAttempts }, `${KIND_NAMES[kind]} given up`);
    await onEnded([id]);
    return status;
  }

  return {
    /**
     * Sends one message that is due. Called as a local activity: the workflow decides what follows. A message that was attempted by a
     * group or by an earlier run may reach the limit here. While the workflow waits after this, Temporal has no pending activity, so
     * upkeep could treat the message as stuck; before a long wait, its check is postponed. So is that of a message that was not attempted:
     * the relay would take its workflow for one that no worker runs.
     */
    attempt: async ({ maximumAttempts = Infinity, ...member }: Member & AttemptLimit): Promise<MemberResult> => {
      let result = await attempt(member);
      if (result.state === 'again' && hasReachedLimit(result, maximumAttempts))
        result = endedAs(await giveUpMessage({ id: member.id, maximumAttempts }), result);
      if (result.state !== 'again') return result;
      const waitMs = Math.max(result.afterMs ?? 0, result.postponed ? 0 : deps.initialIntervalMs);
      if (result.postponed || waitMs >= LONG_WAIT_MS) await channel.postponeCheck([member.id], waitMs);
      return result;
    },

    /**
     * Sends one message that is due, under the retry policy of the activity.
     * @throws ApplicationFailure of type NotAccepted when it should be tried again, or given up
     */
    deliver: async ({ maximumAttempts, ...member }: Member & AttemptLimit): Promise<Delivery> => {
      const result = await withHeartbeat(() => attempt(member));
      if (result.state !== 'again') return result;
      throw notAccepted(result.reason, hasReachedLimit(result, maximumAttempts), retryDelayMs(deps, result));
    },

    giveUp: giveUpMessage,

    /** Cancels a message that is still scheduled. @returns its status afterwards */
    cancel: async ({ id }: { id: string }): Promise<DeliveryStatus> => {
      const status = (await cancelScheduled(deps, channel, [id], id)).get(id) ?? 'canceled';
      await onEnded([id]);
      return status;
    },
  };
}
