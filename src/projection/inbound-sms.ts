import { keywordOf } from '../domain/sms/keywords.ts';
import { newId } from '../domain/ids.ts';
import type { InboundSms } from '../providers/twilio/callbacks.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { deleteOptOut, insertOptOut, insertReceived } from '../store/sms/opt-outs.ts';
import { findReceiver } from '../store/sms/senders.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';

/**
 * Reports an inbound message to the sender's organization. A keyword changes the opt-out of sender and recipient in the same
 * transaction. A repeated callback changes nothing.
 * @returns false if no organization has the sender
 */
export async function projectInboundSms(pool: Pool, sms: InboundSms): Promise<boolean> {
  const { providerMessageId, from, to, messagingServiceSid, text } = sms;
  return transaction(pool, async (client) => {
    const receiver = await findReceiver(client, to, messagingServiceSid);
    if (!receiver) return false;
    if (!(await insertReceived(client, providerMessageId))) return true;
    const { org_id, sender } = receiver;
    const keyword = keywordOf(text);
    if (keyword === 'stop') await insertOptOut(client, org_id, sender, from);
    if (keyword === 'start') await deleteOptOut(client, org_id, sender, from);
    const event = { event_id: newId('evt', Date.now()), org_id, type: 'sms.received', data: { from, to, text } };
    await enqueueEvents(client, [event]);
    return true;
  });
}
