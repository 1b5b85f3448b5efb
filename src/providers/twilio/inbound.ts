import type {
  ChatUser,
  InboundCallback,
  InboundMedia,
  InboundMessage,
  InboundType,
} from '../../domain/chat/inbound.ts';
import { contentTypeOf, nameOf, e164Of, textOf, userIdOf } from '../inbound-fields.ts';

/** The path of a file. The settings determine the host, so that credentials are sent to no other one. */
const MEDIA_PATH = /\/2010-04-01\/Accounts\/AC\w{32}\/Messages\/[SM]M\w{32}\/Media\/ME\w{32}$/;
const SID = /^[SM]M\w{32}$/;
const PREFIX = /^whatsapp:/;

/** Returns our number that a message was sent to; undefined if it is no chat-app message. */
export function twilioReceiver(params: URLSearchParams): string | undefined {
  const to = params.get('To') ?? '';
  return PREFIX.test(to) ? (e164Of(to.replace(PREFIX, '')) ?? undefined) : undefined;
}

/**
 * Parses the message of a user (https://www.twilio.com/docs/messaging/guides/webhook-request). `From` is the user's id if it
 * withholds its number; `ExternalUserId` always is.
 * @returns undefined if it is no message of a user
 */
export function readTwilioInbound(params: URLSearchParams): InboundCallback | undefined {
  const number = twilioReceiver(params);
  const providerMessageId = params.get('MessageSid') ?? '';
  const user = readUser(params);
  if (number === undefined || !SID.test(providerMessageId) || (user.number ?? user.userId) === null) return undefined;
  return {
    provider: 'twilio',
    number,
    events: [{ kind: 'message', providerMessageId, user, sentAt: null, ...readContent(params) }],
  };
}

function readUser(params: URLSearchParams): ChatUser {
  const from = (params.get('From') ?? '').replace(PREFIX, '');
  return {
    number: e164Of(from) ?? e164Of(params.get('WaId')),
    userId: userIdOf((params.get('ExternalUserId') ?? '').replace(PREFIX, '')) ?? userIdOf(from),
    username: null,
    name: nameOf(params.get('ProfileName')),
  };
}

type Content = Omit<InboundMessage, 'kind' | 'providerMessageId' | 'user' | 'sentAt'>;

function readContent(params: URLSearchParams): Content {
  const repliesTo = nameOf(params.get('OriginalRepliedMessageSid'));
  const text = textOf(params.get('Body'));
  const media = readMedia(params);
  const button = readButton(params);
  const location = readLocation(params);
  const content: Content = { type: 'text', text, media, button, location, reaction: null, repliesTo };
  if (params.get('MessageType') === 'reaction' && repliesTo !== null) {
    return {
      ...content,
      type: 'reaction',
      text: null,
      reaction: { emoji: nameOf(text), providerMessageId: repliesTo },
    };
  }
  if (button) return { ...content, type: 'button', text: null };
  if (location) return { ...content, type: 'location', text: null };
  if (media) return { ...content, type: typeOfFile(media) };
  return { ...content, type: text === null ? 'unsupported' : 'text' };
}

function readButton(params: URLSearchParams): InboundMessage['button'] {
  const text = params.get('ButtonText') ?? params.get('ListTitle');
  if (text === null) return null;
  return { text: nameOf(text) ?? '', payload: nameOf(params.get('ButtonPayload') ?? params.get('ListId')) };
}

function readLocation(params: URLSearchParams): InboundMessage['location'] {
  const [latitude, longitude] = [Number(params.get('Latitude') ?? NaN), Number(params.get('Longitude') ?? NaN)];
  if (!Number.isFinite(latitude) || !Number.isFinite(longitude)) return null;
  return { latitude, longitude, name: nameOf(params.get('Label')), address: nameOf(params.get('Address')) };
}

/** The chat app sends one file with a message. */
function readMedia(params: URLSearchParams): InboundMedia | null {
  const reference = MEDIA_PATH.exec(params.get('MediaUrl0') ?? '')?.[0];
  if (reference === undefined) return null;
  return { reference, contentType: contentTypeOf(params.get('MediaContentType0')), filename: null };
}

function typeOfFile({ contentType }: InboundMedia): InboundType {
  if (contentType === 'image/webp') return 'sticker';
  const kind = contentType.split('/')[0];
  return kind === 'image' || kind === 'video' || kind === 'audio' ? kind : 'document';
}
