import { USER_ID_IN_TEXT } from './chat/recipient.ts';
import { parseDomain } from './email/address.ts';

/** A local part, as far as it may reach, and a domain, also in Unicode. */
const ADDRESS = /([^\s"<>(),;:\\[\]@]{1,64})@([\p{L}\p{M}\p{N}.。．｡-]+)/gu;
/** A telephone number in E.164, with or without its +. */
const NUMBER = /(?<!\d)\d{5,15}(?!\d)/g;

/**
 * Finds everything in a text that may be a recipient, also in JSON, URLs and replies of servers: addresses in lower case, telephone
 * numbers in E.164 and ids of chat-app users. Most results are none: compare them with recipients that are known.
 */
export function possibleRecipients(text: string): Set<string> {
  const found = new Set<string>();
  for (const form of new Set([text, decode(text)])) {
    for (const [, local = '', domain = ''] of form.toLowerCase().matchAll(ADDRESS)) addAddresses(found, local, domain);
    for (const [digits] of form.matchAll(NUMBER)) found.add(`+${digits}`);
    for (const [id] of form.matchAll(USER_ID_IN_TEXT)) found.add(id);
  }
  return found;
}

/** Adds an address, and each that begins after punctuation: a local part may contain it, and it may enclose the address. */
function addAddresses(found: Set<string>, local: string, written: string): void {
  const domain = parseDomain(written.replace(/[^\p{L}\p{M}\p{N}]+$/u, ''));
  if (domain === undefined) return;
  for (const { index } of local.matchAll(/(?:^|(?<=[^\p{L}\p{N}]))./gu)) found.add(`${local.slice(index)}@${domain}`);
}

/** Decodes the escapes of JSON and URLs. */
function decode(text: string): string {
  return text
    .replace(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\[bfnrt]/g, ' ')
    .replace(/(?:%[0-9a-f]{2})+/gi, decodePercent);
}

function decodePercent(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
