import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { chatSeal } from '../../accounts/chat-numbers.ts';
import type { InboundCallback } from '../../domain/chat/inbound.ts';
import { makeMediaLinks } from '../../domain/chat/media-links.ts';
import { projectChatReports } from '../../projection/chat.ts';
import { projectInbound } from '../../projection/chat-inbound.ts';
import { answerMetaChallenge, isMetaSignature, readMetaCallback } from '../../providers/meta/callbacks.ts';
import { readMetaInbound } from '../../providers/meta/inbound.ts';
import { isTwilioSignature, readTwilioCallback } from '../../providers/twilio/callbacks.ts';
import { readTwilioInbound, twilioReceiver } from '../../providers/twilio/inbound.ts';
import { findReceivingNumber } from '../../store/chat/inbound.ts';
import { keepCallback } from '../../store/emails/callbacks.ts';
import { findNumberOf } from '../../store/chat/attempts.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { addressOf } from './attachments.ts';
import { type Route, route } from '../route.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

/** Secrets that authenticate callbacks of chat-app providers. Without them, callbacks are refused. */
export interface ChatCallbackSecrets {
  /** The token of the account that numbers without their own token use. */
  readonly twilioAuthToken: string | undefined;
  readonly metaAppSecret: string | undefined;
  /** The token that Meta must present when it verifies the callback URL. */
  readonly metaVerifyToken: string | undefined;
}

interface ChatCallbackDeps {
  readonly pool: Pool;
  readonly secretKey: SecretKeys;
  /** The base of the callback URL that Twilio signs, and of links to files. */
  readonly publicUrl: string | undefined;
  readonly chatCallbacks: ChatCallbackSecrets;
  readonly wakeRelay: () => void;
}

/** Twilio posts a few hundred bytes, and may add fields. */
const MAX_FORM_BYTES = 65_536;
/** Meta posts at most this much. */
const MAX_META_BYTES = 3 * 1_048_576;

/** Base64 of an HMAC-SHA1. */
const TWILIO_SIGNATURE = /^[A-Za-z0-9+/]{27}=$/;
/** Hexadecimal HMAC-SHA256. */
const META_SIGNATURE = /^sha256=[0-9a-f]{64}$/i;

const MESSAGE_ID = /^wa_[0-9a-z]{26}$/;

/** Providers may add query parameters. */
const ANY_QUERY = Type.Object({}, { additionalProperties: true });

const callback = { tags: ['Callbacks'], hide: true, querystring: ANY_QUERY } as const;

/**
 * Receives Twilio's status callback for the message in the query. It must be signed with the token of the account that the
 * message's number uses, so that the owner of a number cannot report on others' messages.
 */
export function twilio({ pool, secretKey, publicUrl, chatCallbacks }: ChatCallbackDeps): Route {
  const seal = chatSeal(secretKey);

  async function tokenFor(messageId: string | undefined): Promise<string | undefined> {
    const number = messageId === undefined ? undefined : await findNumberOf(pool, messageId);
    if (number?.provider !== 'twilio' || !number.credentials) return chatCallbacks.twilioAuthToken;
    return seal.open(number.credentials, number.id).toString();
  }

  const posted = route(
    {
      ...callback,
      summary: 'What Twilio reports',
      body: Type.Unknown(),
      response: { 200: Type.Object({}) },
    },
    async (request) => {
      const form = new URLSearchParams((request.body as Buffer).toString());
      const { m } = request.query as { m?: unknown };
      const messageId = typeof m === 'string' && MESSAGE_ID.test(m) ? m : undefined;
      const token = await tokenFor(messageId);
      const url = publicUrl === undefined ? '' : publicUrl + request.originalUrl;
      const signature = only(request.headers['x-twilio-signature']);
      if (token === undefined || !isTwilioSignature(token, url, form, signature)) throw unsigned('Twilio');
      const report = readTwilioCallback(form, messageId);
      if (!report || !(await projectChatReports(pool, 'twilio', [report]))) {
        await keepCallback(pool, 'twilio', `${request.originalUrl} ${form.toString()}`);
      }
      return {};
    },
    requireTwilioSignature,
  );
  return { ...posted, bodyLimit: MAX_FORM_BYTES, isRaw: true, networkLimit: 'failures' };
}

function requireTwilioSignature({ headers }: FastifyRequest): void {
  if (!isOf(TWILIO_SIGNATURE, headers['x-twilio-signature'])) throw unsigned('Twilio');
}

/**
 * Receives a message of a user through Twilio, signed with the token of the account that the receiving number uses. The
 * response is TwiML without instructions.
 */
export function twilioInbound(deps: ChatCallbackDeps): Route {
  const { pool, secretKey, publicUrl, chatCallbacks } = deps;
  const seal = chatSeal(secretKey);
  const project = inboundProjector(deps);
  const posted = route(
    {
      ...callback,
      summary: 'Messages of users through Twilio',
      body: Type.Unknown(),
      response: { 200: Type.String() },
    },
    async (request, reply) => {
      const form = new URLSearchParams((request.body as Buffer).toString());
      const receiver = twilioReceiver(form);
      const number = receiver === undefined ? undefined : await findReceivingNumber(pool, receiver);
      const own = number?.credentials ? seal.open(number.credentials, number.id).toString() : undefined;
      const token = own ?? chatCallbacks.twilioAuthToken;
      const url = publicUrl === undefined ? '' : publicUrl + request.originalUrl;
      const signature = only(request.headers['x-twilio-signature']);
      if (token === undefined || !isTwilioSignature(token, url, form, signature)) throw unsigned('Twilio');
      const inbound = readTwilioInbound(form);
      if (!inbound || !(await project(request, [inbound]))) {
        await keepCallback(pool, 'twilio', `${request.originalUrl} ${form.toString()}`);
      }
      return reply.type('text/xml').send('<Response/>');
    },
    requireTwilioSignature,
  );
  return { ...posted, bodyLimit: MAX_FORM_BYTES, isRaw: true, networkLimit: 'failures' };
}

/** Records messages of users. @returns whether all callbacks concern a connected number */
function inboundProjector({ pool, secretKey, publicUrl, wakeRelay }: ChatCallbackDeps) {
  const links = makeMediaLinks(secretKey);
  return async (request: FastifyRequest, callbacks: readonly InboundCallback[]): Promise<boolean> => {
    const base = publicUrl ?? addressOf(request);
    let isKnown = true;
    for (const each of callbacks) {
      isKnown = (await projectInbound(pool, each, (id, expires) => base + links.make(id, expires))) && isKnown;
    }
    wakeRelay();
    return isKnown;
  };
}

/** Answers Meta's verification request, which contains the configured token. */
export function metaChallenge({ chatCallbacks }: ChatCallbackDeps): Route {
  return route({ ...callback, summary: 'Meta makes sure of this address' }, async (request, reply) => {
    const { metaVerifyToken: token } = chatCallbacks;
    const answer = token === undefined ? undefined : answerMetaChallenge(token, request.query);
    if (answer === undefined)
      throw new ServiceError('unauthorized', 'the verify token of the Meta webhook is required');
    return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(answer);
  });
}

/** Receives Meta's reports and messages of users: many in one post, in any order, and most of them twice. */
export function meta(deps: ChatCallbackDeps): Route {
  const { pool, chatCallbacks } = deps;
  const project = inboundProjector(deps);
  const posted = route(
    {
      ...callback,
      summary: 'What Meta reports',
      body: Type.Unknown(),
      response: { 200: Type.Object({}) },
    },
    async (request) => {
      const body = request.body as Buffer;
      const { metaAppSecret: secret } = chatCallbacks;
      const signature = only(request.headers['x-hub-signature-256']);
      if (secret === undefined || !isMetaSignature(secret, body, signature)) throw unsigned('Meta');
      const [reports, inbound] = [readMetaCallback(body), readMetaInbound(body)];
      const isRecorded =
        (inbound.length > 0 && reports.length === 0) || (await projectChatReports(pool, 'meta', reports));
      if (!(await project(request, inbound)) || !isRecorded) {
        await keepCallback(pool, 'meta', body.toString().replaceAll('\0', ''));
      }
      return {};
    },
    ({ headers }) => {
      const isSigned = isOf(META_SIGNATURE, headers['x-hub-signature-256']);
      if (chatCallbacks.metaAppSecret === undefined || !isSigned) throw unsigned('Meta');
    },
  );
  return { ...posted, bodyLimit: MAX_META_BYTES, isRaw: true, networkLimit: 'failures' };
}

function unsigned(provider: string): ServiceError {
  return new ServiceError('unauthorized', `a signature of ${provider} is required`);
}

/** Returns true for a header in the form of a signature. Others are refused before the body is read. */
function isOf(form: RegExp, header: string | string[] | undefined): boolean {
  return form.test(only(header) ?? '');
}

/** Returns a header that occurs exactly once. */
function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? undefined : value;
}
