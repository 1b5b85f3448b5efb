import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { isSame } from '../../lib/digest.ts';
import type { ChatReport } from '../chat-provider.ts';
import { sentence } from '../chat-refusals.ts';
import { type Fields, isObject, isText, listOf, parseObject } from '../json-fields.ts';
import { readError } from './errors.ts';

/**
 * Returns true if the app's secret has signed these bytes: `X-Hub-Signature-256`,
 * https://developers.facebook.com/docs/graph-api/webhooks/getting-started#event-notifications. Compares in constant time.
 * @param rawBody the signature is over the bytes, not over the parsed content
 */
export function isMetaSignature(appSecret: string, rawBody: Buffer, header: string | undefined): boolean {
  const signature = /^sha256=([0-9a-f]{64})$/i.exec(header ?? '')?.[1];
  if (signature === undefined || appSecret === '') return false;
  const expected = createHmac('sha256', createSecretKey(appSecret, 'utf8')).update(rawBody).digest();
  return timingSafeEqual(Buffer.from(signature, 'hex'), expected);
}

/** Returns the plain-text response to Meta's verification of a URL; undefined if the token is wrong. */
export function answerMetaChallenge(verifyToken: string, query: object): string | undefined {
  const { 'hub.mode': mode, 'hub.verify_token': token, 'hub.challenge': challenge } = query as Fields;
  if (mode !== 'subscribe' || typeof token !== 'string' || typeof challenge !== 'string') return undefined;
  return verifyToken !== '' && isSame(token, verifyToken) ? challenge : undefined;
}

/** Meta's statuses; others, such as `deleted` and `warning`, change nothing. */
const CHANGES: Readonly<Record<string, ChatReport['change']>> = {
  sent: 'sent',
  delivered: 'delivered',
  read: 'read',
  played: 'read',
  failed: 'failed',
};

/**
 * Parses the reports of one post. Their order is not the order of events
 * (https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/components#statuses-object).
 * @returns an empty list if it contains no report of a known kind, or is not JSON
 */
export function readMetaCallback(rawBody: Buffer): ChatReport[] {
  return readMetaValues(rawBody).flatMap(readStatuses);
}

/** The values of a post about messages: statuses of ours, and messages of users. */
export function readMetaValues(rawBody: Buffer): Fields[] {
  return listOf(parseObject(rawBody.toString())?.['entry'])
    .flatMap((entry) => listOf(entry['changes']))
    .flatMap(({ field, value }) => (field === 'messages' && isObject(value) ? [value] : []));
}

function readStatuses({ statuses, metadata }: Fields): ChatReport[] {
  const id = isObject(metadata) ? metadata['phone_number_id'] : undefined;
  // The recipient's id may differ from the number that was written to (https://developers.facebook.com/docs/whatsapp/phone-numbers).
  const endpoints = { phoneNumberId: isText(id) ? id : '' };
  return listOf(statuses).flatMap((status) => {
    const report = readStatus(status);
    return report ? { ...report, endpoints } : [];
  });
}

function readStatus({ id, status, errors, biz_opaque_callback_data: ours }: Fields): ChatReport | undefined {
  if (!isText(id) || !isText(status) || !Object.hasOwn(CHANGES, status)) return undefined;
  const change = CHANGES[status] as ChatReport['change'];
  const report: ChatReport = {
    change,
    messageId: isText(ours) ? ours : undefined,
    providerMessageId: id,
    dedupeKey: `${id} ${change}`,
  };
  if (change !== 'failed') return report;
  const { code, message } = readError(listOf(errors)[0]);
  return {
    ...report,
    error: sentence('Meta could not deliver it', code, message),
    ...(code !== undefined && { errorCode: String(code) }),
  };
}
