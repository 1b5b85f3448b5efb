import { domainToUnicode } from 'node:url';
import type { ErasedAddress } from '../store/emails/erasure.ts';
import type { ErasedNumber } from '../store/messages/erasure.ts';

/**
 * Characters of a local part: if they precede a match, it is the end of a longer address. Punctuation that also encloses addresses
 * in replies and URLs is such a character only after a letter or digit; &, =, / and ? always delimit an address.
 */
const LONGER_ADDRESS = "[A-Za-z0-9_.+~-]|[A-Za-z0-9]['!#$%*^`{|}]";
/**
 * Encoded characters that delimit an address although they end in a letter or digit: escapes of JSON, and percent-encoded white
 * space, double quotes, brackets, and & , / : ; = ?
 */
const ENCODED_DELIMITER = '\\\\(?:[bfnrt]|u[0-9a-f]{4})|%(?:0[9ad]|2[02689cf]|3[a-f]|5[bd])';
const BEGIN = `(?:(?<!${LONGER_ADDRESS})|(?<=${ENCODED_DELIMITER}))`;

/** Returns the forms of an address that statements search for. @param address bare, in lower case */
export function toErasedAddress(address: string, placeholder: string): ErasedAddress {
  const [local = '', domain = ''] = address.split('@');
  const locals = spellingsOf(local);
  // Stored addresses are as customers wrote them, so their domain may be in Unicode.
  const domains = [...new Set([domain, domainToUnicode(domain)].flatMap(spellingsOf))];
  const spellings = locals.flatMap((name) => domains.flatMap((host) => [`${name}@${host}`, `${name}%40${host}`]));
  const [anyLocal, anyDomain] = [anyOf(locals), anyOf(domains)];
  return {
    address,
    placeholder,
    likePatterns: spellings.map((spelling) => `%${escapeLike(spelling)}%`),
    localPattern: `%${escapeLike(local)}@%`,
    // In form encoding, + is a space.
    pattern: `(?:${BEGIN}${anyLocal}(?:@|%40)|(?<=\\+)${anyLocal}%40)${anyDomain}(?![A-Za-z0-9-]|\\.[A-Za-z0-9])`,
  };
}

/**
 * Returns the forms of a telephone number and of its users that statements search for. A number is found with and without its +,
 * also in URLs, but not within a longer one.
 * @param forms of the number, E.164 @param userIds of chat-app users who write from it
 */
export function toErasedNumber(
  address: string,
  forms: readonly string[],
  userIds: readonly string[],
  placeholder: string,
): ErasedNumber {
  const digits = forms.map((form) => form.slice(1));
  const number = `(?:\\+|%2b)?(?:(?<![0-9])|(?<=${ENCODED_DELIMITER}))${anyOf(digits)}(?![0-9])`;
  const user = `(?<![A-Za-z0-9.])${anyOf(userIds)}(?![A-Za-z0-9])`;
  return {
    address,
    placeholder,
    ids: [...forms, ...userIds],
    likePatterns: [...digits, ...userIds].map((id) => `%${escapeLike(id.toLowerCase())}%`),
    // Numbers and ids have one spelling: this matches no text.
    localPattern: '',
    pattern: userIds.length === 0 ? number : `${number}|${user}`,
  };
}

/** Returns a part of an address in lower case, as it is and as in a URL: percent-encoded, and in form encoding. */
function spellingsOf(part: string): string[] {
  const formEncoded = new URLSearchParams({ '': part }).toString().slice(1);
  return [...new Set([part, encodeURIComponent(part).toLowerCase(), formEncoded.toLowerCase()])];
}

/** Returns a regular expression that matches any of the texts literally. */
function anyOf(texts: readonly string[]): string {
  return `(?:${texts.map((text) => text.replace(/[^\p{L}\p{M}\p{N}]/gu, '\\$&')).join('|')})`;
}

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&');
}
