import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { isUserId } from '../../src/domain/chat/recipient.ts';
import { parsePhone } from '../../src/domain/chat/phone.ts';
import type { ChatParts } from './chat-call.ts';
import type { InboxChat } from './inbox/message.ts';
import type { Post } from './posts.ts';

const text = Type.String({ minLength: 1 });

/** A message of a WhatsApp user, for `POST /simulator/whatsapp`. Exactly one kind of content is allowed. */
const Message = Type.Object(
  {
    /** A number, whose user also has a derived id; or the id of a user who withholds the number. */
    from: text,
    /** The number that receives it. */
    to: text,
    provider: Type.Optional(Type.Enum(['twilio', 'meta'])),
    text: Type.Optional(text),
    file: Type.Optional(
      Type.Object({ content_type: text, content: text, caption: Type.Optional(text), filename: Type.Optional(text) }),
    ),
    button: Type.Optional(Type.Object({ text, payload: text })),
    location: Type.Optional(
      Type.Object({ latitude: Type.Number(), longitude: Type.Number(), name: Type.Optional(text) }),
    ),
    reaction: Type.Optional(Type.Object({ emoji: Type.String(), message_id: text })),
    /** The provider's id of the message to which it replies. */
    reply_to: Type.Optional(text),
    /** When the user sent it, for Meta: `2026-03-01T09:30:00Z`; now by default. */
    sent_at: Type.Optional(text),
  },
  { additionalProperties: false },
);
const message = Compile(Message);

/** A message of a user as its provider posts it. */
export interface UserMessage extends Omit<Static<typeof Message>, 'from' | 'sent_at'> {
  readonly id: string;
  readonly user: {
    /** E.164; null if it is withheld. */
    readonly number: string | null;
    readonly userId: string;
    readonly username: string | null;
  };
  /** The id of the file. */
  readonly fileId: string | null;
  /** Unix seconds. */
  readonly timestamp: number;
}

/**
 * Builds the post of a message; null if callbacks of the provider are not configured.
 * @param delays milliseconds before each retry, if the provider retries that often
 */
export type PostOf = (message: UserMessage, delays: readonly number[]) => Omit<Post, 'id' | 'at'>;

/** The files of users' messages. */
export class Files {
  readonly #files = new Map<string, { readonly content_type: string; readonly content: Buffer }>();

  add(content_type: string, content: Buffer): string {
    const id = randomBytes(16).toString('hex');
    this.#files.set(id, { content_type, content });
    return id;
  }

  get(id: string) {
    return this.#files.get(id);
  }
}

/** Returns Meta's id of the user with a number. */
export function userIdOf(number: string): string {
  const phone = parsePhone(number);
  const country = (typeof phone === 'object' && phone.country) || 'US';
  return `${country}.${BigInt(`0x${createHash('md5').update(number).digest('hex')}`) % 10n ** 17n}`;
}

interface UserParts extends ChatParts {
  readonly files: Files;
  readonly postsOf: Readonly<Record<'twilio' | 'meta', PostOf | null>>;
}

export function userRoutes(app: FastifyInstance, parts: UserParts): void {
  app.post('/simulator/whatsapp', ({ body }, reply) => {
    const id = sendAsUser(parts, body);
    return typeof id === 'string' ? reply.code(202).send({ id }) : reply.code(422).send(id);
  });

  app.get<{ Params: { id: string } }>('/simulator/files/:id', ({ params }, reply) => {
    const file = parts.files.get(params.id);
    return file ? reply.type(file.content_type).send(file.content) : reply.code(404).send({ error: 'no such file' });
  });
}

/** Replies to a message in the inbox with a text. @returns its id; undefined without a callback URL of the provider */
export function replyAsUser(parts: UserParts, { provider, from, to, id }: InboxChat, text: string): string | undefined {
  const receiver = `+${from.replace(/^\+/, '')}`;
  const sent = sendAsUser(parts, { provider, from: to, to: receiver, text, reply_to: id });
  return typeof sent === 'string' ? sent : undefined;
}

/** Posts a message as its provider does, as often as the switch `repeat_reports` requires. @returns its id, or an error */
function sendAsUser(
  { files, postsOf, posts, retries, switches }: UserParts,
  input: unknown,
): string | { readonly error: string } {
  if (!message.Check(input)) {
    const [error] = message.Errors(input);
    return { error: `${error?.instancePath.slice(1).replaceAll('/', '.') || 'body'}: ${error?.message ?? 'is wrong'}` };
  }
  const { from, sent_at, ...content } = input;
  const number = /^\+[1-9]\d{6,14}$/.test(from) ? from : null;
  if (number === null && !isUserId(from)) return { error: 'from: must be a number in E.164 or a user id' };
  const at = sent_at === undefined ? Date.now() : Date.parse(sent_at);
  if (Number.isNaN(at)) return { error: 'sent_at: must be a time' };
  const provider = input.provider ?? 'twilio';
  const postOf = postsOf[provider];
  if (!postOf) return { error: `provider: no callback URL of ${provider} is configured` };
  const id =
    provider === 'twilio' ? `SM${randomBytes(16).toString('hex')}` : `wamid.${randomBytes(30).toString('base64')}`;
  const userMessage = {
    ...content,
    id,
    user: {
      number,
      userId: number === null ? from : userIdOf(number),
      username: number === null ? 'ada.example' : null,
    },
    fileId: input.file ? files.add(input.file.content_type, Buffer.from(input.file.content, 'base64')) : null,
    timestamp: Math.floor(at / 1_000),
  };
  const post = { id, at: Date.now(), ...postOf(userMessage, retries) };
  const repeats = Array.from({ length: 1 + switches.now.repeat_reports }, () => post);
  posts.add(repeats);
  return id;
}
