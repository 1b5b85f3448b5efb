import type { Member } from '../src/delivery/contract.ts';
import { deliverOnce } from '../src/delivery/deliver.ts';
import { messageChannel } from '../src/delivery/messages/channel.ts';
import type { MessageDeps } from '../src/delivery/messages/contract.ts';
import type { MessageChannel } from '../src/domain/messages/message.ts';
import { makeDeliveryActivities } from './delivery.ts';

/** The activities of the fleet `chat`: chat-app messages and SMS. */
export function makeMessageActivities(deps: MessageDeps) {
  const activitiesOf = (kind: MessageChannel) => {
    const channel = messageChannel(deps, kind);
    return makeDeliveryActivities(deps, channel, {
      // Messages have no copies, so none ends as `partial`. Tasks of versions before schedules have no `version`.
      deliver: async ({ id, version = 0 }: Partial<Member> & { id: string }) => {
        const { results } = await deliverOnce(deps, channel, [{ id, version }]);
        return results.filter((result) => result.state !== 'partial');
      },
    });
  };
  const [chat, sms] = [activitiesOf('chatapp'), activitiesOf('sms')];
  return {
    deliverChat: chat.deliver,
    giveUpChat: chat.giveUp,
    cancelChat: chat.cancel,
    deliverSms: sms.deliver,
    giveUpSms: sms.giveUp,
    cancelSms: sms.cancel,
  };
}
export type MessageActivities = ReturnType<typeof makeMessageActivities>;
