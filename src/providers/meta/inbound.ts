import type {
  ChatUser,
  InboundCallback,
  InboundEvent,
  InboundMedia,
  InboundMessage,
} from '../../domain/chat/inbound.ts';
import { contentTypeOf, nameOf, e164Of, textOf, userIdOf } from '../inbound-fields.ts';
import { type Fields, isText, listOf, objectOf } from '../json-fields.ts';
import { readMetaValues } from './callbacks.ts';

/** Names of objects of a message that refer to a file. */
const MEDIA = ['image', 'video', 'audio', 'document', 'sticker'] as const;
/** Part of a URL. */
const MEDIA_ID = /^[0-9A-Za-z_-]{1,128}$/;

/**
 * Parses the messages of users in one post, and the changes of their ids
 * (https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages).
 */
export function readMetaInbound(rawBody: Buffer): InboundCallback[] {
  return readMetaValues(rawBody).flatMap(({ metadata, messages, contacts }) => {
    const phoneNumberId = objectOf(metadata)['phone_number_id'];
    const events = listOf(messages).flatMap((message) => readEvent(message, listOf(contacts)) ?? []);
    return isText(phoneNumberId) && events.length > 0 ? [{ provider: 'meta', phoneNumberId, events }] : [];
  });
}

function readEvent(message: Fields, contacts: readonly Fields[]): InboundEvent | undefined {
  if (message['type'] === 'system') return readChange(message);
  const { id } = message;
  const user = readUser(message, contacts);
  if (!isText(id) || (user.number ?? user.userId) === null) return undefined;
  return { kind: 'message', providerMessageId: id, user, sentAt: sentAt(message), ...readContent(message) };
}

/** The user of a message: its id may also be in the place of its number. */
function readUser({ from, from_user_id: fromUserId }: Fields, contacts: readonly Fields[]): ChatUser {
  const isSender = ({ wa_id, user_id }: Fields): boolean =>
    (from !== undefined && wa_id === from) || (fromUserId !== undefined && user_id === fromUserId);
  const contact = contacts.find(isSender) ?? (contacts.length === 1 ? contacts[0] : undefined) ?? {};
  const profile = objectOf(contact['profile']);
  return {
    number: e164Of(from) ?? e164Of(contact['wa_id']),
    userId: userIdOf(fromUserId) ?? userIdOf(contact['user_id']) ?? userIdOf(from),
    username: nameOf(profile['username']),
    name: nameOf(profile['name']),
  };
}

function sentAt({ timestamp }: Fields): number | null {
  const seconds = Number(timestamp);
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds * 1_000 : null;
}

type Content = Omit<InboundMessage, 'kind' | 'providerMessageId' | 'user' | 'sentAt'>;

function readContent(message: Fields): Content {
  const context = objectOf(message['context']);
  const nothing: Content = {
    type: 'unsupported',
    text: null,
    media: null,
    button: null,
    location: null,
    reaction: null,
    repliesTo: isText(context['id']) ? context['id'] : null,
  };
  const type = message['type'];
  const own = objectOf(message[String(type)]);
  const mediaType = MEDIA.find((name) => name === type);
  if (mediaType !== undefined) {
    const media = readMedia(own);
    return media ? { ...nothing, type: mediaType, text: textOf(own['caption']), media } : nothing;
  }
  switch (type) {
    case 'text':
      return { ...nothing, type, text: textOf(own['body']) };
    case 'button':
      return { ...nothing, type, button: buttonOf(own['text'], own['payload']) };
    case 'interactive': {
      const { title, id } = objectOf(own[String(own['type'])]);
      return { ...nothing, type: 'button', button: buttonOf(title, id) };
    }
    case 'location': {
      const { latitude, longitude, name, address } = own;
      if (typeof latitude !== 'number' || typeof longitude !== 'number') return nothing;
      return { ...nothing, type, location: { latitude, longitude, name: nameOf(name), address: nameOf(address) } };
    }
    case 'reaction': {
      const { message_id: providerMessageId, emoji } = own;
      return isText(providerMessageId)
        ? { ...nothing, type, reaction: { emoji: nameOf(emoji), providerMessageId } }
        : nothing;
    }
    default:
      return nothing;
  }
}

function buttonOf(text: unknown, payload: unknown): InboundMessage['button'] {
  return { text: nameOf(text) ?? '', payload: nameOf(payload) };
}

function readMedia({ id, mime_type: contentType, filename }: Fields): InboundMedia | null {
  if (typeof id !== 'string' || !MEDIA_ID.test(id)) return null;
  return { reference: id, contentType: contentTypeOf(contentType), filename: nameOf(filename) };
}

/** Ids in the text of a change, where the old one has no field of its own. */
const CHANGED_FROM = /\bfrom\s+\W*([A-Z]{2}\.[A-Za-z0-9.]+)/;

/** `user_changed_number` and `user_changed_user_id`; other system messages change no ids. */
function readChange({ from, from_user_id: fromUserId, system }: Fields): InboundEvent | undefined {
  const { type, body, wa_id, new_wa_id, user_id, previous_user_id: previous } = objectOf(system);
  if (type !== 'user_changed_number' && type !== 'user_changed_user_id') return undefined;
  const after = { number: e164Of(new_wa_id) ?? e164Of(wa_id), userId: userIdOf(user_id) };
  const inBody = CHANGED_FROM.exec(typeof body === 'string' ? body : '')?.[1]?.replace(/\.$/, '');
  const before = {
    number: e164Of(from),
    userId: [previous, fromUserId, inBody].map(userIdOf).find((id) => id !== null && id !== after.userId) ?? null,
  };
  const isKnown = (before.number ?? before.userId) !== null && (after.number ?? after.userId) !== null;
  return isKnown ? { kind: 'userChange', before, after } : undefined;
}
