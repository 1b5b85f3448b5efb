/** An address with all but the first letter of its local part hidden, for places that people and logs can see. */
export function maskAddress(address: string): string {
  const bare = /<([^<>]*)>\s*$/.exec(address)?.[1] ?? address;
  const at = bare.lastIndexOf('@');
  return at < 1 ? '***' : `${bare.slice(0, 1)}***${bare.slice(at)}`;
}

/** A sentence with every address in it masked: providers quote addresses in their answers. */
export function maskAddresses(sentence: string): string {
  return sentence.replace(/[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/g, maskAddress);
}
