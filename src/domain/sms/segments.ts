/** Characters of GSM 03.38 section 6.2.1; each is one septet. */
const BASIC =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
/** Characters of the extension table; each is an escape septet and another septet. */
const EXTENSION = '\f^{}\\[~]|€';

const SEPTETS: ReadonlyMap<string, number> = new Map([
  ...Array.from(BASIC, (character): [string, number] => [character, 1]),
  ...Array.from(EXTENSION, (character): [string, number] => [character, 2]),
]);

export const SMS_ENCODINGS = ['gsm7', 'ucs2'] as const;
export type SmsEncoding = (typeof SMS_ENCODINGS)[number];

/** Units in a message of one segment, and in each segment of a longer message, which has a header of 6 bytes. */
const CAPACITY: Readonly<Record<SmsEncoding, { readonly single: number; readonly part: number }>> = {
  gsm7: { single: 160, part: 153 },
  ucs2: { single: 70, part: 67 },
};

/**
 * Counts the segments of a text as Twilio does without smart encoding (https://www.twilio.com/docs/glossary/what-sms-character-limit):
 * no character is replaced, and neither an escape pair nor a surrogate pair is split between two segments.
 */
export function sizeOf(text: string): { readonly encoding: SmsEncoding; readonly segments: number } {
  const septets = Array.from(text, (character) => SEPTETS.get(character));
  if (septets.every((count) => count !== undefined)) {
    return { encoding: 'gsm7', segments: countSegments(septets, CAPACITY.gsm7) };
  }
  const units = Array.from(text, ({ length }) => length);
  return { encoding: 'ucs2', segments: countSegments(units, CAPACITY.ucs2) };
}

/** @param lengths the lengths of the characters, in units of the encoding */
function countSegments(lengths: readonly number[], { single, part }: (typeof CAPACITY)[SmsEncoding]): number {
  if (lengths.reduce((sum, length) => sum + length, 0) <= single) return 1;
  let [segments, used] = [1, 0];
  for (const length of lengths) {
    if (used + length > part) [segments, used] = [segments + 1, 0];
    used += length;
  }
  return segments;
}
