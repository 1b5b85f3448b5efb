import { keywordOf } from '../domain/sms/keywords.ts';
import type { InboundSms } from '../providers/twilio/callbacks.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { deleteOptOut, insertOptOut, insertReceived } from '../store/sms/opt-outs.ts';
import { findReceivers } from '../store/sms/senders.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { isWithin, type ReceivedLimit } from './received-limit.ts';

/**
 * Reports an inbound message to the sender's organization. A keyword changes the opt-out of recipient and sender in the same
 * transaction, and of the messaging service that the sender is in, as at Twilio. A repeated callback changes nothing.
 * Beyond the limit, a message has one effect only: a keyword that opts out.
 * @returns false if no organization has the sender
 */
export async function projectInboundSms(pool: Pool, sms: InboundSms, limit: ReceivedLimit): Promise<boolean> {
  const { providerMessageId, from, to, messagingServiceSid, text, optOutType } = sms;
  return transaction(pool, async (client) => {
    const receivers = await findReceivers(client, to, messagingServiceSid);
    const [receiver] = receivers;
    if (!receiver) return false;
    const { org_id, sender: receivedBy } = receiver;
    const isKept = isWithin(limit, receivedBy);
    if (isKept) {
      if (!(await insertReceived(client, providerMessageId))) return true;
      limit.take(receivedBy);
    }
    const [known, own] = [keywordOf(optOutType ?? ''), keywordOf(text)];
    // A word that is not on the provider's list may be a request to stop all the same.
    const keyword = own === 'stop' ? own : (known ?? own);
    for (const { org_id: orgId, sender } of receivers) {
      if (keyword === 'stop') await insertOptOut(client, orgId, sender, from);
      if (keyword === 'start' && isKept) await deleteOptOut(client, orgId, sender, from);
    }
    if (isKept) await enqueueEvents(client, [{ org_id, type: 'sms.received', data: { from, to, text } }]);
    return true;
  });
}
