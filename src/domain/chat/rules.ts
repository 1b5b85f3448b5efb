import { CHAT_TYPES, type ChatProviderName, type ChatType } from './chat.ts';
import type { Problem } from '../errors.ts';
import { COMPONENTS_DEPTH } from '../limits.ts';
import { bodyProblem } from '../../lib/text.ts';

/** What of a request decides whether it holds what its type needs and nothing else. */
type Contents = { readonly type?: ChatType | null; readonly text?: unknown } & {
  readonly [T in Exclude<ChatType, 'text'>]?: unknown;
};

/** A message has the object that its type is named after, and none that would never be sent. */
export function contentProblem(body: Contents): Problem | undefined {
  const type = body.type ?? 'text';
  if (body[type] == null) return { path: type, message: `is required when type is ${type}` };
  const unused = CHAT_TYPES.find((other) => other !== type && body[other] != null && !isCaption(other, type));
  return unused && { path: unused, message: `cannot be given when type is ${type}` };
}

/** `text` may caption a file. */
function isCaption(field: ChatType, type: ChatType): boolean {
  return field === 'text' && (type === 'image' || type === 'document');
}

/** A template's components may be any JSON that comes out of us as it came in. */
export function templateProblem({ components }: { readonly components?: unknown }): Problem | undefined {
  const problem = jsonProblem(components, COMPONENTS_DEPTH);
  return (
    problem && { ...problem, path: ['components', ...(problem.path === undefined ? [] : [problem.path])].join('.') }
  );
}

/** What cannot be stored and passed on as it is, with where it stands. */
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

/** Reading JSON rounds what has more digits, and nobody would see it. */
const INEXACT = 'is a number with more digits than can be passed on; write it as a string';

function isExact(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** Which fields belong to the numbers of which provider. */
const FIELDS: Readonly<Record<ChatProviderName, readonly string[]>> = {
  meta: ['phone_number_id', 'access_token'],
  twilio: ['account_sid', 'auth_token', 'templates'],
};

/** A number has what its provider needs, and nothing that only another one would use. */
export function numberProblem(
  body: { readonly provider: ChatProviderName } & Readonly<Record<string, unknown>>,
): Problem | undefined {
  const given = (field: string): boolean => body[field] != null;
  if (!Object.hasOwn(FIELDS, body.provider)) return undefined;
  for (const [provider, fields] of Object.entries(FIELDS)) {
    const stray = provider === body.provider ? undefined : fields.find(given);
    if (stray !== undefined) return { path: stray, message: `is not used by ${body.provider}` };
  }
  if (body.provider === 'meta' && !given('phone_number_id')) {
    return { path: 'phone_number_id', message: 'is required when provider is meta' };
  }
  return given('account_sid') && !given('auth_token')
    ? { path: 'auth_token', message: 'is required with account_sid' }
    : undefined;
}

/** What is wrong with the name that Twilio has for something, if anything. @param kind its first two letters */
export function sidProblem(kind: 'AC' | 'HX', sid: string): string | undefined {
  return new RegExp(`^${kind}[0-9A-Za-z]{32}$`).test(sid) ? undefined : `must be ${kind} and 32 letters or digits`;
}

/** What is wrong with Meta's id of a number, if anything: it becomes a part of a URL. */
export function phoneNumberIdProblem(id: string): string | undefined {
  return /^[0-9A-Za-z_-]{1,64}$/.test(id) ? undefined : 'must be 1 to 64 letters, digits, _ and -';
}

/** What is wrong with a token that goes into a header, if anything. */
export function tokenProblem(token: string): string | undefined {
  return /^[\x21-\x7E]{1,2048}$/.test(token)
    ? undefined
    : 'must be 1 to 2048 printable ASCII characters without spaces';
}

/** A template of a number has one content in each language. */
export function uniqueTemplates(
  templates: readonly { readonly name: string; readonly language: string }[],
): Problem | undefined {
  const seen = new Set<string>();
  for (const [index, { name, language }] of templates.entries()) {
    const key = `${language} ${name}`;
    if (seen.has(key)) return { path: `${index}.name`, message: 'appears twice in one language' };
    seen.add(key);
  }
  return undefined;
}
