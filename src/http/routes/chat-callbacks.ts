import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { openNumberToken } from '../../accounts/chat-numbers.ts';
import type { InboundCallback } from '../../domain/chat/inbound.ts';
import { ServiceError } from '../../domain/errors.ts';
import { projectInbound } from '../../projection/chat-inbound.ts';
import { projectInboundSms } from '../../projection/inbound-sms.ts';
import { projectMessageReports } from '../../projection/messages.ts';
import { answerMetaChallenge, isMetaSignature, readMetaCallback } from '../../providers/meta/callbacks.ts';
import { readMetaInbound } from '../../providers/meta/inbound.ts';
import { isTwilioSignature, readInboundSms, readTwilioCallback } from '../../providers/twilio/callbacks.ts';
import { readTwilioInbound, twilioReceiver } from '../../providers/twilio/inbound.ts';
import { parseObject } from '../../providers/json-fields.ts';
import { type CallbackOwner, keepCallback } from '../../store/emails/callbacks.ts';
import { findNumberOf, type SendingNumber } from '../../store/messages/delivery.ts';
import { findReceivingNumber } from '../../store/chat/inbound.ts';
import type { RouteDeps } from '../deps.ts';
import { hiddenRoute } from '../route.ts';
import { addressOf } from './attachments.ts';

/** The maximum size of a callback. Twilio posts a few hundred bytes, and may add fields. */
const MAX_FORM_BYTES = 65_536;
/** The maximum size of Meta's callbacks. */
const MAX_META_BYTES = 3 * 1_048_576;

/** Base64 of an HMAC-SHA1. A request with a malformed or repeated header is refused before its body is read. */
const TWILIO_SIGNATURE = /^[A-Za-z0-9+/]{27}=$/;
/** HMAC-SHA256 in hexadecimal. */
const META_SIGNATURE = /^sha256=[0-9a-f]{64}$/i;

const MESSAGE_ID = /^(?:wa|sms)_[0-9a-z]{26}$/;

/** Providers may add query parameters, so unknown ones are accepted. */
const anyQuery = {
  querystring: Type.Object({}, { additionalProperties: true }),
} as const;
const SIGNED_FORM = {
  bodyLimit: MAX_FORM_BYTES,
  isRaw: true,
  networkLimit: 'failures',
  guard(_deps: RouteDeps, { headers }: FastifyRequest) {
    if (!TWILIO_SIGNATURE.test(String(headers['x-twilio-signature']))) throw signatureRequired('Twilio');
  },
} as const;
const postSchema = { ...anyQuery, body: Type.Unknown(), response: { 200: Type.Object({}) } } as const;

/**
 * Receives what Twilio posts: with a message in the query its status callback, without one a message from a user, or the status of
 * a message that was sent elsewhere. A status must be signed with the token for the message's number, so that the owner of one
 * number cannot report on messages of another; a message from a user with the token for the receiving number.
 */
export const twilio = hiddenRoute({
  ...postSchema,
  handler: async (deps, request, reply) => {
    const form = new URLSearchParams((request.body as Buffer).toString());
    const { m } = request.query as { m?: unknown };
    const messageId = typeof m === 'string' && MESSAGE_ID.test(m) ? m : undefined;
    if (messageId === undefined && form.get('SmsStatus') === 'received') return receive(deps, form, request, reply);
    const number = messageId === undefined ? undefined : await findNumberOf(deps.pool, messageId);
    const signer = number?.provider === 'twilio' ? number : undefined;
    requireSignature(deps, signer, form, request);
    const report = readTwilioCallback(form, messageId);
    const isKnown = report !== undefined && (await projectMessageReports(deps.pool, 'twilio', [report]));
    // For webhook deliveries, and for a message that is sent again as its fallback template.
    deps.wakeRelay();
    if (!isKnown) {
      limitOwn(deps, signer);
      await keepUnknown(deps, form, request, number);
    }
    return {};
  },
  options: SIGNED_FORM,
});

/** Receives a message from a user. Its form may have any `SmsStatus`. */
export const twilioInbound = hiddenRoute({
  ...postSchema,
  response: { 200: Type.String() },
  handler: async (deps, request, reply) =>
    receive(deps, new URLSearchParams((request.body as Buffer).toString()), request, reply),
  options: SIGNED_FORM,
});

/** Records a chat-app message or an SMS from a user. The response is TwiML without instructions. */
async function receive(
  deps: RouteDeps,
  form: URLSearchParams,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const receiver = twilioReceiver(form);
  const number = receiver === undefined ? undefined : await findReceivingNumber(deps.pool, receiver);
  requireSignature(deps, number, form, request);
  limitOwn(deps, number);
  const [inbound, sms] = [readTwilioInbound(form), readInboundSms(form)];
  const isKnown = sms
    ? await projectInboundSms(deps.pool, sms, deps.callbackLimits.messages)
    : inbound !== undefined && (await recordInbound(deps, request, [inbound]));
  deps.wakeRelay();
  if (!isKnown) await keepUnknown(deps, form, request, number);
  return reply.type('text/xml').send('<Response/>');
}

/** Stores a callback that is not about a known message or number. */
async function keepUnknown(
  deps: RouteDeps,
  form: URLSearchParams,
  { originalUrl }: FastifyRequest,
  owner: CallbackOwner | undefined,
): Promise<void> {
  await keepCallback(deps.pool, 'twilio', `${originalUrl} ${form.toString()}`, owner);
}

/** Limits what a number's own token signs. @throws ServiceError rate_limit_exceeded */
function limitOwn({ callbackLimits }: RouteDeps, number: Pick<SendingNumber, 'id' | 'credentials'> | undefined): void {
  if (number?.credentials) callbackLimits.take(number.id);
}

/** Verifies Twilio's signature. @param number if undefined or without its own token, the token in the settings is required */
function requireSignature(
  { publicUrl, chatCallbacks, seal }: RouteDeps,
  number: Pick<SendingNumber, 'id' | 'credentials'> | undefined,
  form: URLSearchParams,
  { originalUrl, headers }: Pick<FastifyRequest, 'originalUrl' | 'headers'>,
): void {
  const own = number && openNumberToken(seal, number);
  const token = own ?? chatCallbacks.twilioAuthToken;
  const url = publicUrl === undefined ? '' : publicUrl + originalUrl;
  const signature = String(headers['x-twilio-signature']);
  if (token === undefined || !isTwilioSignature(token, url, form, signature)) throw signatureRequired('Twilio');
}

/** Records received messages. @returns true if all of them were sent to connected numbers */
async function recordInbound(
  { pool, publicUrl, mediaLinks, callbackLimits: { messages } }: RouteDeps,
  request: FastifyRequest,
  callbacks: readonly InboundCallback[],
): Promise<boolean> {
  const base = publicUrl ?? addressOf(request);
  let isKnown = true;
  for (const callback of callbacks) {
    const link = (id: string, expires: number) => base + mediaLinks.make([id], expires);
    isKnown = (await projectInbound(pool, callback, link, messages)) && isKnown;
  }
  return isKnown;
}

/** Responds to Meta's verification request, which contains the configured token. */
export const metaChallenge = hiddenRoute({
  ...anyQuery,
  options: { networkLimit: 'failures' },
  handler: async ({ chatCallbacks: { metaVerifyToken: token } }, request, reply) => {
    const answer = token === undefined ? undefined : answerMetaChallenge(token, request.query);
    if (answer === undefined)
      throw new ServiceError('unauthorized', 'the verify token of the Meta webhook is required');
    return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(answer);
  },
});

/**
 * Receives Meta's reports and received messages. One post contains many, in any order; most of them arrive twice. A body that is not
 * JSON is kept and refused.
 */
export const meta = hiddenRoute({
  ...postSchema,
  handler: async (deps, request) => {
    const { metaAppSecret: secret } = deps.chatCallbacks;
    const body = request.body as Buffer;
    const signature = String(request.headers['x-hub-signature-256']);
    if (secret === undefined || !isMetaSignature(secret, body, signature)) throw signatureRequired('Meta');
    const [reports, inbound] = [readMetaCallback(body), readMetaInbound(body)];
    const hasNoReports = inbound.length > 0 && reports.length === 0;
    const isReported = hasNoReports || (await projectMessageReports(deps.pool, 'meta', reports));
    const isInboundKnown = await recordInbound(deps, request, inbound);
    deps.wakeRelay();
    if (!isInboundKnown || !isReported) {
      await keepCallback(deps.pool, 'meta', body.toString().replaceAll('\0', ''));
      if (!parseObject(body.toString())) throw new ServiceError('invalid_json', 'the body must be a JSON object');
    }
    return {};
  },
  options: {
    bodyLimit: MAX_META_BYTES,
    isRaw: true,
    networkLimit: 'failures',
    guard({ chatCallbacks }, { headers }) {
      const isSigned = META_SIGNATURE.test(String(headers['x-hub-signature-256']));
      if (chatCallbacks.metaAppSecret === undefined || !isSigned) throw signatureRequired('Meta');
    },
  },
});

function signatureRequired(provider: string): ServiceError {
  return new ServiceError('unauthorized', `a signature of ${provider} is required`);
}
