import { randomBytes } from 'node:crypto';
import type { ChatType } from '../../../src/domain/chat/chat.ts';
import { characters } from '../../../src/lib/text.ts';
import type { ChatAnswer } from '../chat-call.ts';
import type { InboxChat, Received } from '../inbox/message.ts';
import { hasOptedOut } from '../magic.ts';
import { CONTENTS } from './contents.ts';
import { CODE, refuse } from './errors.ts';

const MAX_BODY_LENGTH = 1_600;
const ADDRESS = /^(whatsapp:)?(\+[1-9]\d{6,14})$/;
const USER = /^(whatsapp:)([A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128})$/;
const SMS_SENDER = /^(?:\+[1-9]\d{6,14}|\d{3,8}|MG[0-9a-f]{32})$/;
const IMAGE = /\.(?:jpe?g|png|webp)$/i;

/**
 * Validates the form of a message as Twilio does. Returns an error, or the message with a new id.
 * @param now Unix milliseconds
 */
export function parseAndValidate(
  form: URLSearchParams,
  account: string,
  now: number,
): ChatAnswer | Received<InboxChat> {
  const sender = form.get('MessagingServiceSid') ?? form.get('From') ?? '';
  const isSms = !sender.startsWith('whatsapp:');
  const recipient = form.get('To') ?? '';
  const [, prefix, to] = ADDRESS.exec(recipient) ?? USER.exec(recipient) ?? [];
  if (to === undefined || (prefix === undefined) !== isSms)
    return refuse(400, CODE.to, `The 'To' number ${recipient} is not a valid phone number.`);
  const from = isSms ? SMS_SENDER.exec(sender)?.[0] : ADDRESS.exec(sender)?.[2];
  if (from === undefined) return refuse(400, CODE.from, `The 'From' number ${sender} is not valid.`);
  if (isSms && hasOptedOut(to)) return refuse(400, CODE.optedOut, 'Attempt to send to unsubscribed recipient');
  const content = read(form);
  if ('status' in content) return content;
  const id = `${content.media ? 'MM' : 'SM'}${randomBytes(16).toString('hex')}`;
  return {
    head: {
      id,
      provider: 'twilio',
      received_at: now,
      recipients: [to],
      metadata: { account },
      tag: null,
      stream: null,
    },
    message: {
      ...(isSms && { channel: 'sms' as const }),
      provider: 'twilio',
      id,
      from,
      to,
      ...content,
      received_at: new Date(now).toISOString(),
    },
  };
}

type MessageContent = Pick<InboxChat, 'text' | 'template' | 'media'> & { readonly type: ChatType };

function read(form: URLSearchParams): ChatAnswer | MessageContent {
  const body = form.get('Body');
  const links = form.getAll('MediaUrl');
  const sid = form.get('ContentSid');
  if (sid !== null) return readContent(sid, form.get('ContentVariables'));
  if (characters(body ?? '') > MAX_BODY_LENGTH)
    return refuse(400, CODE.tooLong, `The concatenated message body exceeds the ${MAX_BODY_LENGTH} character limit.`);
  const [link] = links;
  if (link !== undefined) {
    if (links.length > 1 || !/^https?:$/.test(protocolOf(link) ?? ''))
      return refuse(400, CODE.mediaUrl, 'Invalid media URL(s).');
    const type = IMAGE.test(new URL(link).pathname) ? 'image' : 'document';
    return { type, text: null, template: null, media: { link, caption: body, filename: null } };
  }
  if (!body) return refuse(400, CODE.noBody, 'A text message body or media urls must be specified.');
  return { type: 'text', text: body, template: null, media: null };
}

function readContent(sid: string, json: string | null): ChatAnswer | MessageContent {
  const content = CONTENTS.find((one) => one.sid === sid);
  if (!content) return refuse(400, CODE.content, 'The ContentSid is Invalid.');
  const variables = parse(json ?? '{}');
  const isFilled = variables && Object.keys(content.variables).every((name) => typeof variables[name] === 'string');
  if (!isFilled) return refuse(400, CODE.contentVariables, 'The ContentVariables Parameter is invalid.');
  const { name, language } = content;
  return { type: 'template', text: null, template: { name, language, content_sid: sid, variables }, media: null };
}

function protocolOf(link: string): string | undefined {
  return URL.canParse(link) ? new URL(link).protocol : undefined;
}

function parse(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
