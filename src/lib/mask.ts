/** Masks the local part of an address except its first letter, for pages and logs. */
export function maskAddress(address: string): string {
  const bare = (/<([^<>]*)>\s*$/.exec(address)?.[1] ?? address).trim();
  const at = bare.lastIndexOf('@');
  return at < 1 ? '***' : `${String.fromCodePoint(bare.codePointAt(0) as number)}***${bare.slice(at)}`;
}

/** Masks every address in a sentence: providers quote addresses in their responses. */
export function maskAddresses(sentence: string): string {
  // Word by word: searching for the @ in the expression takes quadratic time on a long word without one.
  return sentence.replace(/[^\s<>"'(),;:]+/g, (word) => (/.@./su.test(word) ? maskAddress(word) : word));
}

/** Masks a phone number, or the id of a chat-app user, except its first three and last two characters; a short one whole. */
export function maskNumber(number: string): string {
  const [, first, last] = /^(\+?.{3}).{3,}(.{2})$/.exec(number) ?? [];
  return first === undefined ? '***' : `${first}***${last}`;
}

/** Masks everything in a sentence that may be a phone number: providers quote numbers in their responses. */
export function maskNumbers(sentence: string): string {
  return sentence.replace(/\+?\d{8,}/g, maskNumber);
}
