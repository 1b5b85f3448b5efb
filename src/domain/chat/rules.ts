import { CHAT_TYPES, type ChatProviderName, type ChatType } from './chat.ts';
import type { Problem } from '../errors.ts';
import { COMPONENTS_DEPTH } from '../limits.ts';
import { bodyProblem } from '../../lib/text.ts';

/** The fields that determine whether a request matches its type. */
type Contents = { readonly type?: ChatType | null; readonly text?: unknown; readonly fallback_template?: unknown } & {
  readonly [T in Exclude<ChatType, 'text'>]?: unknown;
};

/** Requires the object that the type names, and rejects objects of other types. */
export function contentProblem(body: Contents): Problem | undefined {
  const type = body.type ?? 'text';
  if (type === 'template' && body.fallback_template != null) {
    return { path: 'fallback_template', message: 'cannot be given when type is template' };
  }
  if (body[type] == null) return { path: type, message: `is required when type is ${type}` };
  const unused = CHAT_TYPES.find((other) => other !== type && body[other] != null && !isCaption(other, type));
  return unused && { path: unused, message: `cannot be given when type is ${type}` };
}

/** True if `text` is the caption of a file. */
function isCaption(field: ChatType, type: ChatType): boolean {
  return field === 'text' && (type === 'image' || type === 'document');
}

/** Returns why a template's components cannot be stored and passed on unchanged, or undefined. They may be any other JSON. */
export function templateProblem({ components }: { readonly components?: unknown }): Problem | undefined {
  return jsonProblem({ components }, COMPONENTS_DEPTH + 1);
}

/** Returns the path and message of JSON that cannot be stored and passed on unchanged, or undefined. */
function jsonProblem(value: unknown, depth: number): Problem | undefined {
  if (typeof value === 'string') return textProblem(value);
  if (typeof value === 'number') return isExact(value) ? undefined : { message: INEXACT };
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === 0) return { message: `must be nested at most ${COMPONENTS_DEPTH} deep` };
  for (const [key, item] of Object.entries(value)) {
    const problem = textProblem(key) ?? jsonProblem(item, depth - 1);
    if (problem) return { ...problem, path: problem.path === undefined ? key : `${key}.${problem.path}` };
  }
  return undefined;
}

function textProblem(text: string): Problem | undefined {
  const message = bodyProblem(text);
  return message === undefined ? undefined : { message };
}

/** JSON.parse silently rounds numbers with more digits. */
const INEXACT = 'is a number with more digits than can be passed on; write it as a string';

function isExact(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** Provider-specific fields of numbers. */
const FIELDS: Readonly<Record<ChatProviderName, readonly string[]>> = {
  meta: ['phone_number_id', 'access_token'],
  twilio: ['account_sid', 'auth_token', 'templates'],
};

/** Requires the fields of a number's provider, and rejects those of other providers. */
export function numberProblem(
  body: { readonly provider: ChatProviderName } & Readonly<Record<string, unknown>>,
): Problem | undefined {
  const isSet = (field: string): boolean => body[field] != null;
  if (!Object.hasOwn(FIELDS, body.provider)) return undefined;
  for (const [provider, fields] of Object.entries(FIELDS)) {
    const stray = provider === body.provider ? undefined : fields.find(isSet);
    if (stray !== undefined) return { path: stray, message: `is not used by ${body.provider}` };
  }
  if (body.provider === 'meta' && !isSet('phone_number_id')) {
    return { path: 'phone_number_id', message: 'is required when provider is meta' };
  }
  return isSet('account_sid') && !isSet('auth_token')
    ? { path: 'auth_token', message: 'is required with account_sid' }
    : undefined;
}

/** Returns why a Twilio SID is not valid, or undefined. @param kind its first two letters */
export function sidProblem(kind: 'AC' | 'HX', sid: string): string | undefined {
  return new RegExp(`^${kind}[0-9A-Za-z]{32}$`).test(sid) ? undefined : `must be ${kind} and 32 letters or digits`;
}

/** Returns why Meta's id of a number is not valid, or undefined. It becomes part of a URL. */
export function phoneNumberIdProblem(id: string): string | undefined {
  return /^[0-9A-Za-z_-]{1,64}$/.test(id) ? undefined : 'must be 1 to 64 letters, digits, _ and -';
}

/** Returns why a token is not valid in a header, or undefined. */
export function tokenProblem(token: string): string | undefined {
  return /^[\x21-\x7E]{1,2048}$/.test(token)
    ? undefined
    : 'must be 1 to 2048 printable ASCII characters without spaces';
}

/** Requires that the templates of a number differ in name or language. */
export function uniqueTemplates(
  templates: readonly { readonly name: string; readonly language: string }[],
): Problem | undefined {
  const keyOf = ({ name, language }: (typeof templates)[number]) => `${language} ${name}`;
  return repetition(templates, keyOf, 'name', 'appears twice in one language');
}

/** Finds the first item with the key of an earlier one. Items without a key are ignored. */
export function repetition<T>(
  items: readonly T[],
  keyOf: (item: T) => string | null | undefined,
  field: string,
  message: string,
): Problem | undefined {
  const seen = new Set<string>();
  const index = items.map(keyOf).findIndex((key) => key != null && seen.size === seen.add(key).size);
  return index < 0 ? undefined : { path: `${index}.${field}`, message };
}
