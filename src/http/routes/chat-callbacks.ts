import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { chatSeal } from '../../accounts/chat-numbers.ts';
import { projectChatReports } from '../../projection/chat.ts';
import { answerMetaChallenge, isMetaSignature, readMetaCallback } from '../../providers/meta/callbacks.ts';
import { isTwilioSignature, readTwilioCallback } from '../../providers/twilio/callbacks.ts';
import { keepCallback } from '../../store/emails/callbacks.ts';
import { findNumberOf } from '../../store/chat/attempts.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { type Route, route } from '../route.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

/** What providers of chat-app messages must know to be believed; without it, what they post is refused. */
export interface ChatCallbackSecrets {
  /** Of the account that numbers without a token of their own use. */
  readonly twilioAuthToken: string | undefined;
  readonly metaAppSecret: string | undefined;
  /** What Meta is told to say when it asks whether an address wants its reports. */
  readonly metaVerifyToken: string | undefined;
}

interface ChatCallbackDeps {
  readonly pool: Pool;
  readonly secretKey: SecretKeys;
  /** Where Twilio was told that we are. */
  readonly publicUrl: string | undefined;
  readonly chatCallbacks: ChatCallbackSecrets;
}

/** Bytes of Twilio's forms: a few hundred, and some more for what it may add. */
const FORM_BYTES = 65_536;
/** Bytes that Meta posts at most. */
const META_BYTES = 3 * 1_048_576;

/** Base64 of an HMAC-SHA1. */
const TWILIO_SIGNATURE = /^[A-Za-z0-9+/]{27}=$/;
/** Hexadecimal HMAC-SHA256. */
const META_SIGNATURE = /^sha256=[0-9a-f]{64}$/i;

const MESSAGE_ID = /^wa_[0-9a-z]{26}$/;

/** Providers add to a query what they like. */
const ANY_QUERY = Type.Object({}, { additionalProperties: true });

const callback = { tags: ['Callbacks'], hide: true, querystring: ANY_QUERY } as const;

/**
 * What Twilio reports after the hand-over, about the message that the query names. It must be signed with the token of
 * the account which that message's number uses: who owns a number can say nothing about others' messages.
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
    ({ headers }) => {
      if (!isOf(TWILIO_SIGNATURE, headers['x-twilio-signature'])) throw unsigned('Twilio');
    },
  );
  return { ...posted, bodyLimit: FORM_BYTES, isRaw: true, networkLimit: 'failures' };
}

/** Meta asks whether this address wants its reports, with the token that it was told to say. */
export function metaChallenge({ chatCallbacks }: ChatCallbackDeps): Route {
  return route({ ...callback, summary: 'Meta makes sure of this address' }, async (request, reply) => {
    const { metaVerifyToken: token } = chatCallbacks;
    const answer = token === undefined ? undefined : answerMetaChallenge(token, request.query);
    if (answer === undefined)
      throw new ServiceError('unauthorized', 'the verify token of the Meta webhook is required');
    return reply.type('text/plain; charset=utf-8').header('x-content-type-options', 'nosniff').send(answer);
  });
}

/** What Meta reports after the hand-over: many messages in one post, in any order, and most of it twice. */
export function meta({ pool, chatCallbacks }: ChatCallbackDeps): Route {
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
      if (!(await projectChatReports(pool, 'meta', readMetaCallback(body)))) {
        await keepCallback(pool, 'meta', body.toString().replaceAll('\0', ''));
      }
      return {};
    },
    ({ headers }) => {
      const isSigned = isOf(META_SIGNATURE, headers['x-hub-signature-256']);
      if (chatCallbacks.metaAppSecret === undefined || !isSigned) throw unsigned('Meta');
    },
  );
  return { ...posted, bodyLimit: META_BYTES, isRaw: true, networkLimit: 'failures' };
}

function unsigned(provider: string): ServiceError {
  return new ServiceError('unauthorized', `a signature of ${provider} is required`);
}

/** Whether a header has the form of a signature. One that has not is refused before the body is read. */
function isOf(form: RegExp, header: string | string[] | undefined): boolean {
  return form.test(only(header) ?? '');
}

/** A header that stands once. */
function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? undefined : value;
}
