import { addressInQuery, parseMailbox } from './email/address.ts';
import { contentIdProblem, contentTypeProblem, filenameProblem, pathProblem } from './email/attachments.ts';
import {
  contentProblem,
  numberProblem,
  phoneNumberIdProblem,
  repetition,
  sidProblem,
  templateProblem,
  tokenProblem,
  uniqueTemplates,
} from './chat/rules.ts';
import { isControlHeader, isServerHeader } from './email/control-headers.ts';
import type { Problem } from './errors.ts';
import { rangeProblem } from '../lib/ip-ranges.ts';
import { parseInstant, SCHEDULE_PROBLEMS } from './instant.ts';
import { HEADER_NAME_LENGTH, HEADER_VALUE_LENGTH, HEADERS, TAG_LENGTH } from './limits.ts';
import { parseSender, SENDER_PROBLEM } from './sms/senders.ts';
import { parsePhone } from './chat/phone.ts';
import { parseContact, parsePhoneQuery, parseRecipientQuery, parseSmsRecipient } from './chat/recipient.ts';
import { parseAddressFilter, wordsProblem } from './email/search.ts';
import { parseTag } from './email/tag-filter.ts';
import { parseStatusFilter } from './status-filter.ts';
import { bodyProblem, characters, controlProblem } from '../lib/text.ts';

/** Checks a value of valid type and length. Returns its problems, or undefined. */
export type Rule<Value = never> = (value: Value) => Problem | readonly Problem[] | undefined;

const problem = (message: string | undefined): Problem | undefined => (message === undefined ? undefined : { message });

/** Header names that Sendwright sets, or that would break the message's structure (interface.md, header rule 4). */
export const REFUSED_HEADERS: ReadonlySet<string> = new Set([
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'return-path',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'content-disposition',
  'dkim-signature',
  'received',
]);

export const REPEATED_HEADER = 'appears twice; header names are case-insensitive';

function headers(value: Record<string, string>): Problem | readonly Problem[] | undefined {
  const names = Object.keys(value);
  if (names.length > HEADERS) return { message: `must have at most ${HEADERS} headers` };
  const seen = new Set<string>();
  const problems = names.flatMap((name) => {
    const message = headerNameProblem(name, seen) ?? headerValueProblem(value[name] as string);
    seen.add(name.toLowerCase());
    // The path repeats the name in the response, so it is truncated to the maximum length of a name.
    return message === undefined ? [] : [{ path: name.slice(0, HEADER_NAME_LENGTH), message }];
  });
  return problems.length > 0 ? problems : undefined;
}

function headerNameProblem(name: string, seen: ReadonlySet<string>): string | undefined {
  const lower = name.toLowerCase();
  if (!/^[\x21-\x39\x3B-\x7E]+$/.test(name)) return 'must be named in printable ASCII without spaces or colons';
  if (name.length > HEADER_NAME_LENGTH) return `must have a name of at most ${HEADER_NAME_LENGTH} characters`;
  if (REFUSED_HEADERS.has(lower) || lower.startsWith('resent-')) return 'is set by Sendwright and cannot be given';
  if (isControlHeader(name)) return 'is a control header of an email provider; other custom headers are allowed';
  if (isServerHeader(name)) return 'is written by mail servers and cannot be given; other custom headers are allowed';
  return seen.has(lower) ? REPEATED_HEADER : undefined;
}

function headerValueProblem(value: string): string | undefined {
  if (characters(value) > HEADER_VALUE_LENGTH) return `must be at most ${HEADER_VALUE_LENGTH} characters`;
  return controlProblem(value);
}

function uniqueTags(tags: readonly { name: string }[]): Problem | undefined {
  const message = 'appears twice; tag names are unique within a message';
  return repetition(tags, ({ name }) => name, 'name', message);
}

const STATUS_FILTER = 'must be a status such as 404, or a class of them such as 4xx';
const DIMENSION = new RegExp(`^(?:domain|batch|key|bounce_reason|tag:[\\w-]{1,${TAG_LENGTH}})$`);
const DIMENSION_FORM = 'must be domain, batch, key, bounce_reason, or tag: and the name of a tag';

const TAG_FILTER = `must be name:value, each of 1 to ${TAG_LENGTH} letters, digits, _ and -`;

function someBody(email: { html?: string | null; text?: string | null }): Problem | undefined {
  if (email.html || email.text) return undefined;
  const onlyText = email.text === '' && email.html == null;
  return onlyText
    ? { path: 'text', message: 'must not be empty unless html is given' }
    : { path: 'html', message: 'is required unless text is given; one of them must not be empty' };
}

function oneSource(file: { content?: unknown; path?: unknown }): Problem | undefined {
  const sourceCount = [file.content, file.path].filter((source) => source != null).length;
  if (sourceCount === 1) return undefined;
  return sourceCount === 0
    ? { path: 'content', message: 'is required unless path is given' }
    : { path: 'path', message: 'cannot be given together with content' };
}

function oneOrMany(body: { email?: unknown; emails?: unknown }): Problem | undefined {
  if (body.email != null && body.emails != null) {
    return { path: 'emails', message: 'cannot be given together with email' };
  }
  return body.email == null && body.emails == null
    ? { path: 'email', message: 'is required unless emails is given' }
    : undefined;
}

function emailOrPhone(body: { email?: unknown; phone?: unknown }): Problem | undefined {
  if (body.email != null && body.phone != null)
    return { path: 'phone', message: 'cannot be given together with email' };
  return body.email == null && body.phone == null
    ? { path: 'email', message: 'is required unless phone is given' }
    : undefined;
}

function uniqueContentIds(files: readonly { content_id?: string | null }[]): Problem | undefined {
  const message = 'appears twice; content ids are unique within an email';
  return repetition(files, ({ content_id: id }) => id, 'content_id', message);
}

/** @param parsed the result of a parser, or its error message */
function unparsed(parsed: object | string): Problem | undefined {
  return typeof parsed === 'string' ? { message: parsed } : undefined;
}

/** Rules that JSON Schema cannot express; schemas refer to them by `x-rule`. */
export const RULES = {
  'statistics-dimension': (value: string) => problem(DIMENSION.test(value) ? undefined : DIMENSION_FORM),
  mailbox: (value: string) => unparsed(parseMailbox(value)),
  'mailbox-in-query': (value: string) => unparsed(parseMailbox(addressInQuery(value))),
  'one-line': (value: string) => problem(controlProblem(value)),
  body: (value: string) => problem(bodyProblem(value)),
  instant: (value: string) => problem(parseInstant(value) ? undefined : SCHEDULE_PROBLEMS.form),
  headers,
  'unique-tags': uniqueTags,
  'some-body': someBody,
  filename: (value: string) => problem(filenameProblem(value)),
  'content-id': (value: string) => problem(contentIdProblem(value)),
  'content-type': (value: string) => problem(contentTypeProblem(value)),
  'attachment-path': (value: string) => problem(pathProblem(value)),
  'one-source': oneSource,
  'unique-content-ids': uniqueContentIds,
  'one-or-many': oneOrMany,
  'email-or-phone': emailOrPhone,
  phone: (value: string) => unparsed(parsePhone(value)),
  'phone-in-query': (value: string) => unparsed(parsePhoneQuery(value)),
  recipient: (value: string) => unparsed(parseSmsRecipient(value)),
  'chat-recipient': (value: string) => unparsed(parseContact(value)),
  'chat-recipient-in-query': (value: string) => unparsed(parseRecipientQuery(value)),
  'sms-sender': (value: string) => problem(parseSender(value) === undefined ? SENDER_PROBLEM : undefined),
  'chat-content': contentProblem,
  template: templateProblem,
  'chat-number': numberProblem,
  'unique-templates': uniqueTemplates,
  'account-sid': (value: string) => problem(sidProblem('AC', value)),
  'content-sid': (value: string) => problem(sidProblem('HX', value)),
  'phone-number-id': (value: string) => problem(phoneNumberIdProblem(value)),
  token: (value: string) => problem(tokenProblem(value)),
  'ip-range': (value: string) => problem(rangeProblem(value)),
  'status-filter': (value: string) => problem(parseStatusFilter(value) ? undefined : STATUS_FILTER),
  'address-filter': (value: string) => unparsed(parseAddressFilter(value)),
  words: (value: string) => problem(wordsProblem(value)),
  'tag-filter': (value: string) => problem(parseTag(value) ? undefined : TAG_FILTER),
} as const satisfies Record<string, Rule>;
export type RuleName = keyof typeof RULES;
