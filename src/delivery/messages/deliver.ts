import type { Channel, Member, MemberResult } from '../contract.ts';
import { deliverOnce } from '../deliver.ts';
import type { MessageDeps, MessageTypes } from './contract.ts';

/** Delivers one message like `deliverOnce`. Messages have no copies, so none ends as `partial`. */
export async function deliverMessage(
  deps: MessageDeps,
  channel: Channel<MessageTypes>,
  member: Member,
): Promise<MemberResult> {
  const { results } = await deliverOnce(deps, channel, [member]);
  const result = results.find(({ state }) => state !== 'partial');
  if (!result || result.state === 'partial') throw new Error('a delivery returned no result');
  return result;
}
