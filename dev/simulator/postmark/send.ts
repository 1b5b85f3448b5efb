import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Switches } from '../behaviour.ts';
import { sendGarbage, pause, resetConnection } from '../faults.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { type FailedOnce, handoverOf } from '../magic.ts';
import { type ValidMessage, parseAndValidate, MAX_MESSAGE_BYTES } from './accept.ts';
import type { ExpectReports } from './callbacks.ts';
import { CODE, type PostmarkError, Refusal } from './errors.ts';
import { reportsOf, toReported } from './reports.ts';
import type { Suppressions } from './suppressions.ts';
import { postmarkTime } from './time.ts';

const MAX_BATCH = 500;
/** Maximum bytes of a whole request. */
const MAX_PAYLOAD_BYTES = { '/email': MAX_MESSAGE_BYTES, '/email/batch': 50 * 1_048_576 };
/** Bytes that are read in any case: to most clients, a 413 during an upload would look like a lost connection. */
const MAX_READ_BYTES = 64 * 1_048_576;

export interface SendParts {
  readonly inbox: Inbox;
  readonly switches: Switches;
  readonly failedOnce: FailedOnce;
  readonly expectReports: ExpectReports | null;
  readonly suppressions: Suppressions;
  /** Milliseconds between a message and the first report about it. */
  readonly reportAfter: number;
  /** Milliseconds before the response to a message for `slow@`. */
  readonly slow: number;
  /** Aborts all waiting when the simulator ends. */
  readonly ending: AbortSignal;
}

/** The result of one message of a call. */
type Item =
  | {
      readonly kind: 'accepted';
      readonly mail: ValidMessage;
      readonly slow: boolean;
      /** Recipients on the suppression list. */
      readonly inactive: readonly string[];
    }
  | { readonly kind: 'refused' | 'failed'; readonly error: PostmarkError };

/** `POST /email` and `POST /email/batch`, https://postmarkapp.com/developer/api/email-api. */
export function sendRoutes(app: FastifyInstance, parts: SendParts): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: MAX_READ_BYTES },
    (request, body, done) => {
      const limit = MAX_PAYLOAD_BYTES[request.routeOptions.url as keyof typeof MAX_PAYLOAD_BYTES];
      try {
        if (body.length > limit) throw new Refusal(413, CODE.invalidEmail, `A request must be at most ${limit} bytes.`);
        done(null, parse(body.toString()));
      } catch (error) {
        done(error as Error);
      }
    },
  );

  app.post('/email', { bodyLimit: MAX_READ_BYTES }, (request, reply) =>
    call(parts, reply, [request.body], ([item]) => {
      const { kind } = item as Item;
      return reply.code(kind === 'accepted' ? 200 : kind === 'refused' ? 422 : 500).send(answerTo(item as Item));
    }),
  );

  app.post('/email/batch', { bodyLimit: MAX_READ_BYTES }, (request, reply) => {
    const mails = request.body;
    if (!Array.isArray(mails)) throw new Refusal(422, CODE.incompatibleJson, 'A batch must be an array of messages.');
    if (mails.length > MAX_BATCH)
      throw new Refusal(422, CODE.tooManyInBatch, `A batch has at most ${MAX_BATCH} messages.`);
    return call(parts, reply, mails, (items) => reply.send(items.map(answerTo)));
  });
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new Refusal(422, CODE.invalidJson, `Invalid JSON: ${(error as Error).message}`);
  }
}

/** Stores the messages of a call first, then delays its response as switches and addresses require. */
async function call(
  parts: SendParts,
  reply: FastifyReply,
  mails: readonly unknown[],
  answer: (items: Item[]) => FastifyReply,
): Promise<FastifyReply> {
  const { inbox, switches, ending } = parts;
  const behaviour = switches.now;
  const fault = switches.take();
  if (fault === 'reset_before_accept') return resetConnection(reply);
  if (fault === 'fail_next') {
    await pause(behaviour.latency_ms, ending);
    if (behaviour.retry_after !== null) reply.header('retry-after', behaviour.retry_after);
    return reply.code(behaviour.status).send(failure(behaviour.status, behaviour.error_code));
  }

  const now = Date.now();
  const items = mails.map((mail) => decide(mail, now, parts));
  const accepted = items.filter((item) => item.kind === 'accepted').map(({ mail }) => mail);
  inbox.add(accepted);
  for (const { head } of accepted) parts.suppressions.expect(head, reportsOf(head, parts.reportAfter));
  parts.expectReports?.(accepted.map(toReported), behaviour);

  if (fault === 'reset_after_accept') return resetConnection(reply);
  if (fault === 'hang') return reply.hijack();
  const slow = items.some((item) => item.kind === 'accepted' && item.slow) ? parts.slow : 0;
  await pause(Math.max(behaviour.latency_ms, slow), ending);
  if (fault === 'fail_after_accept') {
    return reply.code(behaviour.status).send(failure(behaviour.status, behaviour.error_code));
  }
  return fault === 'garbage' ? sendGarbage(reply) : answer(items);
}

function decide(input: unknown, now: number, { failedOnce, suppressions }: SendParts): Item {
  const mail = parseAndValidate(input, now);
  if ('ErrorCode' in mail) return { kind: 'refused', error: mail };
  const { metadata, recipients, stream } = mail.head;
  const inactive = recipients.filter((address) => suppressions.has(stream, address, now));
  if (inactive.length === recipients.length) {
    const Message = `You tried to send to recipients that have been marked as inactive. ${namesOf('Found', inactive)}`;
    return { kind: 'refused', error: { ErrorCode: CODE.inactiveRecipient, Message } };
  }
  const handover = handoverOf(recipients);
  const key = metadata['email'] ?? `${recipients.join()} ${mail.message.subject}`;
  if (handover === 'fail-always' || (handover === 'fail-once' && failedOnce.fails(`postmark ${key}`)))
    return {
      kind: 'failed',
      error: { ErrorCode: CODE.maintenance, Message: `The address asks for this: ${handover}@.` },
    };
  const active = recipients.filter((address) => !inactive.includes(address));
  const head = { ...mail.head, recipients: active };
  return { kind: 'accepted', mail: { ...mail, head }, slow: handover === 'slow', inactive };
}

/** Formats Postmark's text about recipients on its suppression list. */
function namesOf(start: string, inactive: readonly string[]): string {
  return `${start} inactive addresses: ${inactive.join(', ')}. They bounced, complained or were deactivated.`;
}

function answerTo(item: Item): object {
  if (item.kind !== 'accepted') return item.error;
  const { head, given } = item.mail;
  const { inactive } = item;
  return {
    ...given,
    SubmittedAt: postmarkTime(head.received_at),
    MessageID: head.id,
    ErrorCode: 0,
    Message: inactive.length > 0 ? `Message OK, but ${namesOf('will not deliver to these', inactive)}` : 'OK',
  };
}

/** Returns the usual body of a status that a switch requires. */
function failure(status: number, code: number | null): PostmarkError {
  const usual: Record<number, number> = { 401: CODE.token, 422: CODE.invalidEmail, 429: CODE.rateLimit };
  return { ErrorCode: code ?? usual[status] ?? CODE.maintenance, Message: 'A switch of the simulator asks for this.' };
}
