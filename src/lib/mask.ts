/** An address with all but the first letter of its local part hidden, for places that people and logs can see. */
export function maskAddress(address: string): string {
  const bare = (/<([^<>]*)>\s*$/.exec(address)?.[1] ?? address).trim();
  const at = bare.lastIndexOf('@');
  return at < 1 ? '***' : `${String.fromCodePoint(bare.codePointAt(0) as number)}***${bare.slice(at)}`;
}

/** A sentence with every address in it masked: providers quote addresses in their answers. */
export function maskAddresses(sentence: string): string {
  // Word by word: looking for the @ in the expression itself takes quadratic time over a long word without one.
  return sentence.replace(/[^\s<>"'(),;:]+/g, (word) => (/.@./su.test(word) ? maskAddress(word) : word));
}

/** A phone number with all but its first three digits and its last two hidden. */
export function maskNumber(number: string): string {
  return number.replace(/^(\+?\d{3}).*(\d{2})$/, '$1***$2');
}

/** A sentence with everything in it masked that may be a phone number: providers quote numbers in their answers. */
export function maskNumbers(sentence: string): string {
  return sentence.replace(/\+?\d{8,}/g, maskNumber);
}
