import { type Contact, contactAfterChange, contactAfterMessage, type ContactPlan } from '../domain/chat/contacts.ts';
import type { InboundCallback, InboundMessage, UserChange } from '../domain/chat/inbound.ts';
import { newId } from '../lib/ids.ts';
import { deleteContact, findContacts, saveContact, withdrawNumber } from '../store/chat/contacts.ts';
import {
  findAnsweredMessage,
  lockReceivingNumber,
  type ReceivingNumber,
  recordInbound,
} from '../store/chat/inbound.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { isWithin, type ReceivedLimit } from './received-limit.ts';

/**
 * Makes the link to a message's file.
 * @param expires Unix seconds
 */
type MediaLink = (id: string, expires: number) => string;

/**
 * Records messages of users in one transaction: the contact, whose customer-service window opens, and the webhook
 * `chatapp.received`. Repeated messages change nothing; the order of messages does not matter. Beyond the limit, a message only
 * opens the window.
 * @returns false if no connected number received the callback
 */
export async function projectInbound(
  pool: Pool,
  callback: InboundCallback,
  mediaLink: MediaLink,
  limit: ReceivedLimit,
): Promise<boolean> {
  return transaction(pool, async (client) => {
    const number = await lockReceivingNumber(client, callback);
    if (!number) return false;
    for (const event of callback.events) {
      if (event.kind === 'message') await projectMessage(client, number, event, mediaLink, limit);
      else await projectUserChange(client, number, event);
    }
    return true;
  });
}

async function projectMessage(
  db: Db,
  number: ReceivingNumber,
  message: InboundMessage,
  mediaLink: MediaLink,
  limit: ReceivedLimit,
): Promise<void> {
  const id = newId('in');
  const isKept = isWithin(limit, number.number);
  const recorded = await recordInbound(db, number, id, message, isKept);
  if (!recorded) return;
  const contacts = await findContacts(db, number, message.user);
  const plan = contactAfterMessage(contacts, message.user, recorded.sent_at);
  await applyPlan(db, number, plan);
  if (!isKept) return;
  limit.take(number.number);
  const data = {
    ...(await dataOf(db, number, message, plan.save)),
    messageId: id,
    sentAt: recorded.sent_at,
    ...(message.media && {
      media: {
        url: mediaLink(id, recorded.link_expires),
        contentType: message.media.contentType,
        filename: message.media.filename ?? undefined,
      },
    }),
  };
  await enqueueEvents(db, [{ org_id: number.org_id, type: 'chatapp.received', data }]);
}

async function projectUserChange(db: Db, number: ReceivingNumber, change: UserChange): Promise<void> {
  const contacts = await findContacts(db, number, change.before);
  const ids = new Set(contacts.map(({ id }) => id));
  const others = (await findContacts(db, number, change.after)).filter(({ id }) => !ids.has(id));
  await applyPlan(db, number, contactAfterChange([...contacts, ...others], change));
}

/** Deletes contacts and withdraws the number before saving, because user ids and numbers are unique among contacts. */
async function applyPlan(db: Db, number: ReceivingNumber, { remove, withdrawNumber: formerOwner, save }: ContactPlan) {
  for (const { id } of remove) await deleteContact(db, id);
  if (formerOwner) await withdrawNumber(db, formerOwner.id);
  await saveContact(db, number, save);
}

/** The fields of the event that a message determines; absent values are undefined, which JSON leaves out. */
async function dataOf(
  db: Db,
  number: ReceivingNumber,
  { user, type, text, button, location, reaction, repliesTo }: InboundMessage,
  contact: Contact,
): Promise<Record<string, unknown>> {
  const ourId = async (providerMessageId: string) => ({
    messageId: await findAnsweredMessage(db, number, contact, providerMessageId),
    providerMessageId,
  });
  return {
    from: user.number ?? user.userId,
    to: number.number,
    userId: user.userId ?? undefined,
    username: user.username ?? undefined,
    name: user.name ?? undefined,
    type,
    text: text ?? undefined,
    button: button ? { text: button.text, payload: button.payload ?? undefined } : undefined,
    location: location
      ? { ...location, name: location.name ?? undefined, address: location.address ?? undefined }
      : undefined,
    reaction: reaction
      ? { ...(await ourId(reaction.providerMessageId)), emoji: reaction.emoji ?? undefined }
      : undefined,
    context: repliesTo !== null ? await ourId(repliesTo) : undefined,
  };
}
