import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { sizeOf, type SmsEncoding } from '../../src/domain/sms/segments.ts';

/**
 * Counted by hand from Twilio's rules (https://www.twilio.com/docs/glossary/what-sms-character-limit) and the tables of
 * GSM 03.38: 160 septets or 70 units alone, 153 or 67 in each of several segments.
 */
const TEXTS: readonly (readonly [name: string, text: string, encoding: SmsEncoding, segments: number])[] = [
  ['one letter', 'a', 'gsm7', 1],
  ['a sentence', 'Your code is 123456.', 'gsm7', 1],
  ['160 letters', 'a'.repeat(160), 'gsm7', 1],
  ['161 letters', 'a'.repeat(161), 'gsm7', 2],
  ['306 letters', 'a'.repeat(306), 'gsm7', 2],
  ['307 letters', 'a'.repeat(307), 'gsm7', 3],
  ['459 letters', 'a'.repeat(459), 'gsm7', 3],
  ['460 letters', 'a'.repeat(460), 'gsm7', 4],
  ['1,530 letters', 'a'.repeat(1_530), 'gsm7', 10],
  ['1,531 letters', 'a'.repeat(1_531), 'gsm7', 11],
  ['1,600 letters', 'a'.repeat(1_600), 'gsm7', 11],
  ['160 line feeds', '\n'.repeat(160), 'gsm7', 1],
  ['80 times CR LF', '\r\n'.repeat(80), 'gsm7', 1],
  ['160 at signs', '@'.repeat(160), 'gsm7', 1],
  ['160 dollar signs', '$'.repeat(160), 'gsm7', 1],
  ['160 underscores', '_'.repeat(160), 'gsm7', 1],
  ['160 currency signs', '¤'.repeat(160), 'gsm7', 1],
  ['pound, yen and section sign', '£¥§'.repeat(53), 'gsm7', 1],
  ['inverted punctuation', '¡Hola! ¿Mañana?', 'gsm7', 1],
  ['grave accents', 'àèìòù'.repeat(32), 'gsm7', 1],
  ['e with an acute accent', 'é'.repeat(160), 'gsm7', 1],
  ['capital E with an acute accent', 'É'.repeat(160), 'gsm7', 1],
  ['capital C with a cedilla', 'Ç'.repeat(160), 'gsm7', 1],
  ['German', 'ÄÖÜäöüß'.repeat(22), 'gsm7', 1],
  ['Nordic', 'ØøÅåÆæ'.repeat(26), 'gsm7', 1],
  ['Greek capitals without a Latin twin', 'ΔΦΓΛΩΠΨΣΘΞ'.repeat(16), 'gsm7', 1],
  ['80 euro signs', '€'.repeat(80), 'gsm7', 1],
  ['81 euro signs', '€'.repeat(81), 'gsm7', 2],
  ['152 euro signs', '€'.repeat(152), 'gsm7', 2],
  ['153 euro signs: 306 septets, 76 pairs a segment', '€'.repeat(153), 'gsm7', 3],
  ['228 euro signs', '€'.repeat(228), 'gsm7', 3],
  ['229 euro signs', '€'.repeat(229), 'gsm7', 4],
  ['80 opening brackets', '['.repeat(80), 'gsm7', 1],
  ['81 closing brackets', ']'.repeat(81), 'gsm7', 2],
  ['81 opening braces', '{'.repeat(81), 'gsm7', 2],
  ['81 closing braces', '}'.repeat(81), 'gsm7', 2],
  ['81 backslashes', '\\'.repeat(81), 'gsm7', 2],
  ['81 carets', '^'.repeat(81), 'gsm7', 2],
  ['81 tildes', '~'.repeat(81), 'gsm7', 2],
  ['81 vertical lines', '|'.repeat(81), 'gsm7', 2],
  ['81 form feeds', '\f'.repeat(81), 'gsm7', 2],
  ['158 letters and an escape pair', `${'a'.repeat(158)}€`, 'gsm7', 1],
  ['159 letters and an escape pair', `${'a'.repeat(159)}€`, 'gsm7', 2],
  ['an escape pair at the end of a segment', `${'a'.repeat(151)}€${'a'.repeat(153)}`, 'gsm7', 2],
  ['an escape pair across the end of a segment', `${'a'.repeat(152)}€${'a'.repeat(152)}`, 'gsm7', 3],
  ['an escape pair at the start of a segment', `${'a'.repeat(153)}€${'a'.repeat(151)}`, 'gsm7', 2],
  ['c with a cedilla', 'ç', 'ucs2', 1],
  ['a with an acute accent', 'á', 'ucs2', 1],
  ['a with a circumflex', 'â'.repeat(71), 'ucs2', 2],
  ['a combining accent', 'e\u0301', 'ucs2', 1],
  ['Greek alpha', '\u0391', 'ucs2', 1],
  ['the sign for ohm', '\u2126', 'ucs2', 1],
  ['a typographic apostrophe', 'It’s here', 'ucs2', 1],
  ['an ellipsis', 'Wait…', 'ucs2', 1],
  ['an en dash', '9–17', 'ucs2', 1],
  ['a backtick', '`', 'ucs2', 1],
  ['a tab', 'a\tb', 'ucs2', 1],
  ['a no-break space', 'a\u00A0b', 'ucs2', 1],
  ['a zero-width space', 'a\u200Bb', 'ucs2', 1],
  ['the escape character itself', '\u001B', 'ucs2', 1],
  ['cent and degree', '5 ¢, 5 °', 'ucs2', 1],
  ['Chinese', 'Hello, 世界', 'ucs2', 1],
  ['70 Cyrillic letters', 'я'.repeat(70), 'ucs2', 1],
  ['71 Cyrillic letters', 'я'.repeat(71), 'ucs2', 2],
  ['134 Cyrillic letters', 'я'.repeat(134), 'ucs2', 2],
  ['135 Cyrillic letters', 'я'.repeat(135), 'ucs2', 3],
  ['201 Cyrillic letters', 'я'.repeat(201), 'ucs2', 3],
  ['202 Cyrillic letters', 'я'.repeat(202), 'ucs2', 4],
  ['1,600 Cyrillic letters', 'я'.repeat(1_600), 'ucs2', 24],
  ['one other character among 70', `${'a'.repeat(69)}ç`, 'ucs2', 1],
  ['one other character among 71', `${'a'.repeat(70)}ç`, 'ucs2', 2],
  ['one other character among 160', `${'a'.repeat(159)}’`, 'ucs2', 3],
  ['euro signs are one unit in UCS-2', `${'€'.repeat(69)}я`, 'ucs2', 1],
  ['35 emoji', '😀'.repeat(35), 'ucs2', 1],
  ['36 emoji', '😀'.repeat(36), 'ucs2', 2],
  ['66 emoji', '😀'.repeat(66), 'ucs2', 2],
  ['67 emoji: 134 units, 33 pairs a segment', '😀'.repeat(67), 'ucs2', 3],
  ['1,600 emoji', '😀'.repeat(1_600), 'ucs2', 49],
  ['a surrogate pair at the end of a segment', `${'я'.repeat(65)}😀${'я'.repeat(67)}`, 'ucs2', 2],
  ['a surrogate pair across the end of a segment', `${'я'.repeat(66)}😀${'я'.repeat(66)}`, 'ucs2', 3],
  ['a surrogate pair at the start of a segment', `${'я'.repeat(67)}😀${'я'.repeat(65)}`, 'ucs2', 2],
  ['a family of three with joiners', '👨‍👩‍👧', 'ucs2', 1],
  ['17 flags of four units', '🇨🇦'.repeat(17), 'ucs2', 1],
  ['18 flags', '🇨🇦'.repeat(18), 'ucs2', 2],
];

/** The default alphabet and its extension, written as ranges of Unicode. */
const GSM =
  /^[\n\r\x20-\x5A_a-z\xA1\xA3-\xA5\xA7\xBF\xC4-\xC7\xC9\xD1\xD6\xD8\xDC\xDF\xE0\xE4-\xE6\xE8\xE9\xEC\xF1\xF2\xF6\xF8\xF9\xFC\u0393\u0394\u0398\u039B\u039E\u03A0\u03A3\u03A6\u03A8\u03A9\f^{}\\[~\]|\u20AC]*$/;
const ESCAPED = /[\f^{}\\[~\]|\u20AC]/g;

/** Cuts the longest possible segment off the rest of a text, again and again. */
function naive(text: string): { encoding: SmsEncoding; segments: number } {
  const isGsm = GSM.test(text);
  const units = (part: string) => (isGsm ? part.replaceAll(ESCAPED, '..').length : part.length);
  if (units(text) <= (isGsm ? 160 : 70)) return { encoding: isGsm ? 'gsm7' : 'ucs2', segments: 1 };
  let [rest, segments] = [Array.from(text), 0];
  while (rest.length > 0) {
    let length = rest.length;
    while (units(rest.slice(0, length).join('')) > (isGsm ? 153 : 67)) length--;
    [rest, segments] = [rest.slice(length), segments + 1];
  }
  return { encoding: isGsm ? 'gsm7' : 'ucs2', segments };
}

describe('segments of an SMS', () => {
  for (const [name, text, encoding, segments] of TEXTS) {
    it(`${name}: ${encoding}, ${segments}`, () => assert.deepEqual(sizeOf(text), { encoding, segments }));
  }

  it('every character of the basic plane is GSM-7 exactly if GSM 03.38 has it', () => {
    for (let code = 0; code < 0x1_00_00; code++) {
      if (code >= 0xd8_00 && code < 0xe0_00) continue;
      const character = String.fromCharCode(code);
      assert.equal(sizeOf(character).encoding, GSM.test(character) ? 'gsm7' : 'ucs2', code.toString(16));
    }
  });

  it('are those of a second implementation for random texts', () => {
    const unit = fc.constantFrom('a', '€', '[', 'é', '\n', 'ç', 'я', '😀');
    const gsm = fc.constantFrom('a', '€', '|', 'Ω');
    const text = fc.oneof(
      fc.string({ unit, minLength: 1, maxLength: 400 }),
      fc.string({ unit: gsm, minLength: 100, maxLength: 700 }),
    );
    fc.assert(
      fc.property(text, (sample) => assert.deepEqual(sizeOf(sample), naive(sample))),
      { numRuns: 300 },
    );
  });
});
