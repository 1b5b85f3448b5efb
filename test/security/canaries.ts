/** Every form in which bytes may contain a text: plain, escaped or encoded. */
export function formsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    bytes.toString('hex'),
    [...bytes].join(','),
    ...[0, 1, 2].flatMap((shift) => ['base64' as const, 'base64url' as const].map((as) => encodedAt(bytes, shift, as))),
  ].map((form) => form.toLowerCase());
}

/** The part of an encoding of these bytes that does not depend on `shift` unknown bytes before them. */
function encodedAt(bytes: Buffer, shift: number, as: 'base64' | 'base64url'): string {
  const text = Buffer.concat([Buffer.alloc(shift), bytes])
    .toString(as)
    .replace(/=+$/, '');
  // A sextet at either edge holds bits of a neighbour.
  return text.slice(shift === 0 ? 0 : shift + 1, (bytes.length + shift) % 3 === 0 ? undefined : -1);
}

/** The names of the texts (ASCII) that the bytes contain in any form. */
export function foundIn(written: string | Buffer, texts: Readonly<Record<string, string>>): string[] {
  const whole = (typeof written === 'string' ? written : written.toString('latin1')).toLowerCase();
  return Object.entries(texts)
    .filter(([, text]) => formsOf(text).some((form) => whole.includes(form)))
    .map(([name]) => name);
}
