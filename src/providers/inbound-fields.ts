import { currentNumber } from '../domain/chat/phone.ts';
import { isUserId } from '../domain/chat/recipient.ts';

const E164 = /^\+[1-9]\d{4,14}$/;

/** WhatsApp's limits, within which an event fits into a webhook payload. */
const MAX_TEXT_LENGTH = 4_096;
const MAX_NAME_LENGTH = 255;

/** Returns a WhatsApp id, with or without the plus, as E.164; null for anything else. */
export function e164Of(value: unknown): string | null {
  const number = typeof value === 'string' ? currentNumber(value.replace(/^\+?/, '+')) : '';
  return E164.test(number) ? number : null;
}

export function userIdOf(value: unknown): string | null {
  return typeof value === 'string' && isUserId(value) ? value : null;
}

/** Returns the text of a user without characters that JSON or Postgres rejects; null if nothing is left. */
export function textOf(value: unknown): string | null {
  return storable(value, MAX_TEXT_LENGTH);
}

/** Returns a short text, such as the name of a user, a file or a place. */
export function nameOf(value: unknown): string | null {
  return storable(value, MAX_NAME_LENGTH);
}

const CONTENT_TYPE = /^[a-z0-9]+\/[a-z0-9.+-]+/i;

/** Returns the type of a file without parameters, for use in a header. */
export function contentTypeOf(value: unknown): string {
  const type = typeof value === 'string' ? CONTENT_TYPE.exec(value.slice(0, MAX_NAME_LENGTH))?.[0] : undefined;
  return type?.toLowerCase() ?? 'application/octet-stream';
}

/** Control characters take six bytes each in a payload of at most 20 kB; a message needs line feeds and tabs only. */
// eslint-disable-next-line no-control-regex -- control characters are what this expression is about
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F]/g;

function storable(value: unknown, maxCharacters: number): string | null {
  if (typeof value !== 'string') return null;
  const text = Array.from(value.toWellFormed().replace(CONTROL, '')).slice(0, maxCharacters).join('');
  return text === '' ? null : text;
}
