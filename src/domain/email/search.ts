import { characters, controlProblem } from '../../lib/text.ts';
import { MAILBOX_LENGTH, SEARCH_WORDS, SUBJECT_LENGTH } from '../limits.ts';
import { addressInQuery, parseDomain, parseMailbox } from './address.ts';

/** The criteria of a search. An email must meet all of them. */
export interface Search {
  /** Any recipient: `local@domain` in lower case, or `@domain`. The domain is an A-label. */
  readonly to?: string | null;
  /** The sender, in the same forms. */
  readonly from?: string | null;
  /** Words that the subject must contain, as `wordsOf` returns them. */
  readonly subject?: readonly string[] | null;
}

/** The fields of an email that are searched. */
export interface Searchable {
  readonly from: string;
  readonly to: readonly string[];
  readonly cc: readonly string[] | null;
  readonly bcc: readonly string[] | null;
  readonly subject: string;
}

/** Parses an address or `@domain` of a query string. @returns its form in `Search`, or an error message */
export function parseAddressFilter(text: string): { readonly address: string } | string {
  const refused = controlProblem(text);
  if (refused) return refused;
  const trimmed = addressInQuery(text);
  if (trimmed === '') return 'must be an address, or @ and a domain';
  if (characters(trimmed) > MAILBOX_LENGTH) return `must be at most ${MAILBOX_LENGTH} characters`;
  if (trimmed.startsWith('@')) {
    const domain = parseDomain(trimmed.slice(1));
    return domain === undefined
      ? 'must have a domain name after the @, such as example.com'
      : { address: `@${domain}` };
  }
  const mailbox = parseMailbox(trimmed);
  return typeof mailbox === 'string' ? mailbox : { address: mailbox.address.toLowerCase() };
}

const WORD = /[\p{L}\p{M}\p{N}]+/gu;

/** Returns the distinct words of a text: runs of letters and digits in lower case, sorted. */
export function wordsOf(text: string): string[] {
  return [...new Set(text.normalize('NFKC').toLowerCase().match(WORD) ?? [])].sort();
}

/** Returns why a text is not a valid search for words, or undefined. */
export function wordsProblem(text: string): string | undefined {
  if (characters(text) > SUBJECT_LENGTH) return `must be at most ${SUBJECT_LENGTH} characters`;
  const refused = controlProblem(text);
  if (refused) return refused;
  const words = wordsOf(text);
  if (words.length === 0) return 'must contain a word of letters or digits';
  return words.length > SEARCH_WORDS ? `must have at most ${SEARCH_WORDS} words` : undefined;
}

/** Returns the search terms of an email. */
export function termsOf({ from, to, cc, bcc, subject }: Searchable): Set<string> {
  const terms = new Set(wordsOf(subject).map((word) => `subject:${word}`));
  addAddress(terms, 'from', from);
  for (const recipients of [to, cc, bcc]) for (const recipient of recipients ?? []) addAddress(terms, 'to', recipient);
  return terms;
}

function addAddress(terms: Set<string>, field: 'from' | 'to', text: string): void {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') return;
  terms.add(`${field}:${mailbox.address.toLowerCase()}`);
  terms.add(`${field}:@${mailbox.domain}`);
}

/** Returns the terms of a recipient: its address, and its domain. */
export function recipientTerms(address: string): [address: string, domain: string] {
  return [`to:${address}`, `to:${address.slice(address.lastIndexOf('@'))}`];
}

/** Returns the terms that a search requires. */
export function wantedTerms({ to, from, subject }: Search): string[] {
  return [
    ...(to == null ? [] : [`to:${to}`]),
    ...(from == null ? [] : [`from:${from}`]),
    ...(subject ?? []).map((word) => `subject:${word}`),
  ];
}

/** True if an email has all terms of a search. */
export function isMatch(email: Searchable, search: Search): boolean {
  const terms = termsOf(email);
  return wantedTerms(search).every((term) => terms.has(term));
}

/** Postgres regular expressions for fields in lower case; null matches any value. */
interface SearchPatterns {
  readonly recipients: string[] | null;
  readonly sender: string[] | null;
  readonly subject: string[] | null;
}

/**
 * Returns patterns that match an ASCII field if and only if it meets the search. Fields with other characters may contain
 * another form, such as a domain in Unicode; only `isMatch` decides about those.
 */
export function patternsOf({ to, from, subject }: Search): SearchPatterns {
  return {
    recipients: to == null ? null : [addressPattern(to)],
    sender: from == null ? null : [addressPattern(from)],
    subject: subject == null ? null : subject.map((word) => `(^|[^a-z0-9])${word}($|[^a-z0-9])`),
  };
}

function addressPattern(address: string): string {
  const literal = address.replace(/[^a-z0-9@]/g, '\\$&');
  return `${address.startsWith('@') ? '' : `(^|[\\s"<])`}${literal}($|[\\s">])`;
}
