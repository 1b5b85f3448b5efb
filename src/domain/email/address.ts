import { domainToASCII, domainToUnicode } from 'node:url';
import { requireValid } from '../errors.ts';
import { ADDRESS_OCTETS, LABEL_OCTETS, LOCAL_PART_OCTETS, MAILBOX_LENGTH } from '../limits.ts';
import { characters, controlProblem } from '../../lib/text.ts';

/** A parsed address field: `local@domain` or `Name <local@domain>`. */
export interface Mailbox {
  /** The display name without its quotes, or null. */
  readonly name: string | null;
  /** The local part in its original case. */
  readonly local: string;
  /** The domain as a lower-case A-label (RFC 5890). */
  readonly domain: string;
  /** `local@domain`, ready for an SMTP envelope. */
  readonly address: string;
}

/** RFC 5321 §4.1.2 Dot-string, ASCII only. */
const LOCAL_PART = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
/** Matches an encoded word (RFC 2047). It has no meaning in an address, but some parsers decode it and get another address. */
const ENCODED_WORD = /=\?.*\?=/;
/** Characters that an unquoted display name must not contain: RFC 5322 specials except the dot, which is common. */
const NAME_SPECIALS = /[()<>[\]:;@\\,"]/;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/u;
/**
 * Zero-width and bidirectional formatting characters, and C1 controls: they make one address look like another.
 * Variation selectors only choose a character's shape, and names in emoji or Han need them.
 */
const INVISIBLE = /(?!\p{Variation_Selector})\p{Default_Ignorable_Code_Point}|[\u0080-\u009F\uFFF9-\uFFFB]/u;

/** Letters and marks of scripts whose letters change shape beside each other, which the joiners U+200C and U+200D control (UAX #31). */
const JOINING = String.raw`[\p{scx=Adlm}\p{scx=Arab}\p{scx=Mand}\p{scx=Mong}\p{scx=Nkoo}\p{scx=Rohg}\p{scx=Syrc}\p{scx=Beng}\p{scx=Deva}\p{scx=Gujr}\p{scx=Guru}\p{scx=Knda}\p{scx=Mlym}\p{scx=Orya}\p{scx=Sinh}\p{scx=Taml}\p{scx=Telu}\p{scx=Bali}\p{scx=Cakm}\p{scx=Gran}\p{scx=Java}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Newa}\p{scx=Tirh}]`;
const LETTER = String.raw`[\p{L}\p{M}]`;
/** Matches joiners that are part of the spelling of a name: within a word of such a script, and between emoji of one picture. */
const SPELLING_JOINER = new RegExp(
  String.raw`(?<=${LETTER})(?<=${JOINING})[\u200C\u200D](?=${LETTER})(?=${JOINING})` +
    String.raw`|(?<=\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?)\u200D(?=\p{Extended_Pictographic})`,
  'gu',
);

/**
 * Parses one address in the two forms of interface.md. Stricter than RFC 5322 on purpose: quoted local parts, comments,
 * groups and domain literals are invalid, because parsers disagree about each of them.
 * @returns the mailbox, or an error message
 */
export function parseMailbox(text: string): Mailbox | string {
  if (characters(text) > MAILBOX_LENGTH) return `must be at most ${MAILBOX_LENGTH} characters`;
  const control = controlProblem(text);
  if (control) return control;
  const name = text.slice(0, text.lastIndexOf('<') + 1);
  const visible = name.replace(SPELLING_JOINER, '') + text.slice(name.length);
  if (INVISIBLE.test(visible)) return 'must not contain invisible characters';

  const trimmed = text.trim();
  const bracket = trimmed.endsWith('>') ? trimmed.lastIndexOf('<') : -1;
  if (bracket < 0) return parseAddress(null, trimmed);
  const named = parseName(trimmed.slice(0, bracket).trim());
  return typeof named === 'string' ? named : parseAddress(named.name, trimmed.slice(bracket + 1, -1).trim());
}

/** Restores each `+` of an address in a query string, where an unescaped one is decoded as a space. */
export function addressInQuery(text: string): string {
  // Trimming would remove a line break that must be refused.
  const trimmed = controlProblem(text) === undefined ? text.trim() : text;
  const start = trimmed.lastIndexOf('<') + 1;
  const at = trimmed.lastIndexOf('@');
  return at < start
    ? trimmed
    : trimmed.slice(0, start) + trimmed.slice(start, at).replaceAll(' ', '+') + trimmed.slice(at);
}

/** Returns the bare address in lower case, as addresses are compared and stored; undefined for an invalid field. */
export function bareAddress(text: string): string | undefined {
  const mailbox = parseMailbox(text);
  return typeof mailbox === 'string' ? undefined : mailbox.address.toLowerCase();
}

/** Returns the bare address in lower case. @throws ServiceError validation_error */
export function requireAddress(text: string, param: string): string {
  return requireValid(parseMailbox(text), param).address.toLowerCase();
}

/** Parses the name before `<`, quoted or not; returns null for an empty one. */
function parseName(text: string): { name: string | null } | string {
  if (text === '') return { name: null };
  if (!text.startsWith('"')) {
    return NAME_SPECIALS.test(text)
      ? 'must be one address; a name that contains any of ()<>[]:;@\\," is written in double quotes'
      : { name: text };
  }
  const inside = /^"((?:[^"\\]|\\.)*)"$/su.exec(text)?.[1];
  if (inside === undefined) return 'must close the double quotes around the name';
  const name = inside.replace(/\\(.)/gsu, '$1').trim();
  return { name: name === '' ? null : name };
}

function parseAddress(name: string | null, text: string): Mailbox | string {
  const at = text.indexOf('@');
  if (at < 0) return 'must be local@domain or Name <local@domain>';
  const local = text.slice(0, at);
  const rest = text.slice(at + 1);
  if (rest.includes('@')) return 'must be one address with one @';
  if (/[^\x20-\x7E]/.test(local)) return 'must have an ASCII local part before the @';
  if (!LOCAL_PART.test(local))
    return 'must have a plain local part before the @: no spaces, quotes, comments or stray dots';
  if (local.length > LOCAL_PART_OCTETS) return `must have at most ${LOCAL_PART_OCTETS} characters before the @`;
  if (ENCODED_WORD.test(local)) return 'must not have an encoded word before the @';
  const domain = parseDomain(rest);
  if (domain === undefined) return 'must have a domain name after the @, such as example.com';
  if (local.length + 1 + domain.length > ADDRESS_OCTETS) return `must be at most ${ADDRESS_OCTETS} characters`;
  return { name, local, domain, address: `${local}@${domain}` };
}

/**
 * Normalizes a domain name in ASCII or Unicode to a lower-case A-label. Returns undefined if it is invalid: no dot, an empty
 * or too long label, an underscore, a hyphen at the edge of a label, an IP address, or invalid Punycode.
 */
export function parseDomain(text: string): string | undefined {
  // A longer name does not fit in an address, and converting a whole request body would block other requests.
  if (characters(text) > MAILBOX_LENGTH) return undefined;
  const ascii = toAscii(text);
  if (ascii === undefined || ascii.length > ADDRESS_OCTETS - 2) return undefined;
  const labels = ascii.split('.');
  if (labels.length < 2) return undefined;
  if (!labels.every((label) => LABEL.test(label) && label.length <= LABEL_OCTETS)) return undefined;
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) as string)) return undefined;
  // An A-label may decode to a label with a hyphen at its edge (-bücher is xn---bcher-4ya) or to nothing, which Node 24
  // accepts.
  if (ascii.includes('xn--') && /(?:^|\.)(?:-|xn--)|-(?:\.|$)/.test(domainToUnicode(ascii))) return undefined;
  return ascii;
}

/** Node parses the text as a URL host, which also decodes %-escapes and rewrites numbers to IPv4: pass only names. */
function toAscii(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (/^[a-z0-9.-]*$/.test(lower) && !/(?:^|\.)xn--/.test(lower)) return lower;
  if (/[\0-,/:-@[-`{-\x7F]/.test(text) || IGNORABLE.test(text)) return undefined;
  return domainToASCII(text) || undefined;
}
