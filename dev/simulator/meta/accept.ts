import { randomBytes } from 'node:crypto';
import { type Static, type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { isUserId } from '../../../src/domain/chat/recipient.ts';
import { characters } from '../../../src/lib/text.ts';
import type { ChatAnswer } from '../chat-call.ts';
import type { InboxChat, Received } from '../inbox/message.ts';
import { CODE, refuse } from './errors.ts';

const optional = (schema: TSchema) => Type.Optional(schema);
const text = Type.String({ minLength: 1 });
const caption = Type.Optional(Type.String());

/** The fields of `POST /{phone_number_id}/messages` that the simulator reads. */
const Message = Type.Object({
  messaging_product: Type.Literal('whatsapp'),
  to: Type.Optional(text),
  /** A user id. */
  recipient: Type.Optional(text),
  type: Type.Enum(['text', 'template', 'image', 'document']),
  biz_opaque_callback_data: Type.Optional(Type.String({ maxLength: 512 })),
  text: Type.Optional(Type.Object({ body: text, preview_url: optional(Type.Boolean()) })),
  template: Type.Optional(
    Type.Object({
      name: text,
      language: Type.Object({ code: text }),
      components: optional(Type.Array(Type.Object({ type: text }))),
    }),
  ),
  image: Type.Optional(Type.Object({ link: text, caption })),
  document: Type.Optional(Type.Object({ link: text, caption, filename: Type.Optional(Type.String()) })),
});
type Message = Static<typeof Message>;
const message = Compile(Message);

const MAX_TEXT_LENGTH = 4_096;
const MAX_CAPTION_LENGTH = 1_024;

/** A message that Meta accepts, with the value that its reports contain. */
export interface AcceptedMessage extends Received<InboxChat> {
  readonly opaque: string | undefined;
}

/**
 * Validates a message as Meta does. Returns an error, or the message with a new id.
 * @param sender Meta's id of the sending number
 * @param now Unix milliseconds
 */
export function parseAndValidate(input: unknown, sender: string, now: number): ChatAnswer | AcceptedMessage {
  if (!message.Check(input)) {
    const [error] = message.Errors(input);
    const where = error?.instancePath.slice(1).replaceAll('/', '.') || 'The message';
    return refuse(400, CODE.parameter, 'Invalid parameter', `${where} ${error?.message ?? 'has the wrong type'}.`);
  }
  const to = recipientOf(input);
  if (to === undefined) return refuse(400, CODE.parameter, 'Invalid parameter', 'to is not a phone number.');
  const { type } = input;
  const media = type === 'image' ? input.image : type === 'document' ? input.document : undefined;
  if (!input[type]) return refuse(400, CODE.missing, 'Required parameter is missing', `${type} is missing.`);
  if (characters(input.text?.body ?? '') > MAX_TEXT_LENGTH)
    return refuse(400, CODE.parameter, `Param text['body'] must be at most ${MAX_TEXT_LENGTH} characters long.`);
  if (characters(media?.caption ?? '') > MAX_CAPTION_LENGTH)
    return refuse(
      400,
      CODE.parameter,
      `Param ${type}['caption'] must be at most ${MAX_CAPTION_LENGTH} characters long.`,
    );
  return { ...receive(input, media, sender, to, now), opaque: input.biz_opaque_callback_data };
}

/** Returns the number in `to`, otherwise the user id in `recipient`. Meta ignores a user id in `to`. */
function recipientOf({ to, recipient }: Message): string | undefined {
  const digits = to?.replaceAll(/[^\d]/g, '') ?? '';
  if (/^[1-9]\d{6,14}$/.test(digits)) return `+${digits}`;
  return recipient !== undefined && isUserId(recipient) ? recipient : undefined;
}

interface Media {
  readonly link: string;
  readonly caption?: string;
  readonly filename?: string;
}

function receive(
  { type, text, template }: Message,
  media: Media | undefined,
  from: string,
  to: string,
  now: number,
): Received<InboxChat> {
  const id = `wamid.${randomBytes(30).toString('base64')}`;
  return {
    head: { id, provider: 'meta', received_at: now, recipients: [to], metadata: {}, tag: null, stream: null },
    message: {
      provider: 'meta',
      id,
      from,
      to,
      type,
      text: type === 'text' ? (text?.body ?? null) : null,
      template: type === 'template' ? (template ?? null) : null,
      media: media ? { link: media.link, caption: media.caption ?? null, filename: media.filename ?? null } : null,
      received_at: new Date(now).toISOString(),
    },
  };
}
