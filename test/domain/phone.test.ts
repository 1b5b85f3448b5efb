import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseAnyPhone, parsePhone, PHONE_PROBLEMS, phoneInQuery, whatsAppForms } from '../../src/domain/chat/phone.ts';
import { parsePhoneRecipient, parseSmsRecipient } from '../../src/domain/chat/recipient.ts';

/** As written, as E.164, and the country. */
type Row = readonly [text: string, number: string, country: string | undefined];

const READ: Readonly<Record<string, readonly Row[]>> = {
  'in every region': [
    ['+201001234567', '+201001234567', 'EG'],
    ['+30 694 123 4567', '+306941234567', 'GR'],
    ['+33 6 12 34 56 78', '+33612345678', 'FR'],
    ['+52 55 1234 5678', '+525512345678', 'MX'],
    ['+55 11 96123-4567', '+5511961234567', 'BR'],
    ['+81 90-1234-5678', '+819012345678', 'JP'],
    ['+91 81234 56789', '+918123456789', 'IN'],
  ],
  'where countries share a calling code': [
    ['+1 202 555 0123', '+12025550123', 'US'],
    ['+1 416 555 0123', '+14165550123', 'CA'],
    ['+1 787 234 5678', '+17872345678', 'PR'],
    ['+7 912 345 67 89', '+79123456789', 'RU'],
    ['+7 701 123 45 67', '+77011234567', 'KZ'],
    ['+44 7400 123456', '+447400123456', 'GB'],
    ['+44 7781 123456', '+447781123456', 'GG'],
    ['+262 692 12 34 56', '+262692123456', 'RE'],
    ['+262 639 01 23 45', '+262639012345', 'YT'],
    ['+39 06 698 12345', '+390669812345', 'VA'],
    ['+358 18 1234567', '+358181234567', 'AX'],
    ['+47 79 12 34 56', '+4779123456', 'SJ'],
    ['+61 412 345 678', '+61412345678', 'AU'],
    ['+599 318 1234', '+5993181234', 'BQ'],
    ['+599 9 518 1234', '+59995181234', 'CW'],
  ],
  'of a length that its country has, also when it is not assigned: the main country': [
    ['+1 555 000 0001', '+15550000001', 'US'],
    ['+7 000 000 00 00', '+70000000000', 'RU'],
    ['+262 639 12 34 56', '+262639123456', 'RE'],
    ['+44 7000 000000', '+447000000000', 'GB'],
  ],
  'of a territory for which ISO 3166-1 has no country of its own': [
    ['+247 62889', '+24762889', 'SH'],
    ['+290 8999', '+2908999', 'SH'],
    ['+290 51234', '+29051234', 'SH'],
    ['+383 43 201 234', '+38343201234', 'XK'],
  ],
  'of no country': [
    ['+800 1234 5678', '+80012345678', undefined],
    ['+878 10 1234567890', '+878101234567890', undefined],
    ['+979 123 456 789', '+979123456789', undefined],
  ],
  'with separators between digits': [
    ['+1 (416) 555-0123', '+14165550123', 'CA'],
    ['+1.416.555.0123', '+14165550123', 'CA'],
    ['+1 [416] 555 0123 ', '+14165550123', 'CA'],
    ['+ 1 416 555 0123', '+14165550123', 'CA'],
    ['+1\u00A0416\u2011555\u20130123', '+14165550123', 'CA'],
    ['+44 (0)20 7946 0958', '+442079460958', 'GB'],
    ['+1 1 416 555 0123', '+14165550123', 'CA'],
    ['+49 30/901820', '+4930901820', 'DE'],
  ],
  'as people paste it': [
    ['tel:+1-416-555-0123', '+14165550123', 'CA'],
    ['TEL:+14165550123;ext=5;phone-context=example.com', '+14165550123', 'CA'],
    [' +14165550123 ', '+14165550123', 'CA'],
    ['\u00A0+1 416 555 0123\u3000', '+14165550123', 'CA'],
    ['\u202A+14165550123\u202C', '+14165550123', 'CA'],
    ['\u200E+1 416\u200E 555 0123', '+14165550123', 'CA'],
    ['\u2068\u202Atel:+14165550123\u202C\u2069', '+14165550123', 'CA'],
    ['＋１（４１６）５５５－０１２３', '+14165550123', 'CA'],
    ['＋14165550123', '+14165550123', 'CA'],
    ['+١٤١٦٥٥٥٠١٢٣', '+14165550123', 'CA'],
  ],
  "in Mexico with the 1 that WhatsApp's ids still have": [
    ['+52 1 55 4163 7145', '+525541637145', 'MX'],
    ['+5215541637145', '+525541637145', 'MX'],
    ['+52 55 4163 7145', '+525541637145', 'MX'],
  ],
};

describe('00 in the place of the plus', () => {
  for (const text of [
    '0014165550123',
    '00 1 416 555 0123',
    ' \u202A001 416-555-0123\u202C',
    'tel:0014165550123',
    '００１４１６５５５０１２３',
  ]) {
    it(`begins the recipient of an SMS: ${text}`, () =>
      assert.deepEqual(parseSmsRecipient(text), { to: '+14165550123', country: 'CA' }));
  }
  for (const text of ['000416555012', '014165550123', '00', '+0014165550123'])
    it(`does not make a number of ${text}`, () => assert.equal(typeof parseSmsRecipient(text), 'string'));
});

describe('a number in no numbering plan', () => {
  for (const [text, number, country] of [
    ['+225 07 08 09 10', '+22507080910', 'CI'],
    ['+229 95 12 34 56', '+22995123456', 'BJ'],
    ['+881 2345', '+8812345', undefined],
    ['+999123456', '+999123456', undefined],
    ['+5215541637145', '+525541637145', 'MX'],
  ] as const) {
    it(`is read if it need not be in one: ${text}`, () => assert.deepEqual(parseAnyPhone(text), { number, country }));
  }
  for (const text of ['14165550123', '+0123456', '+1234', `+${'1'.repeat(16)}`, 'tel:', ''])
    it(`must still be E.164: ${text}`, () => assert.equal(typeof parseAnyPhone(text), 'string'));
});

for (const [kind, rows] of Object.entries(READ)) {
  describe(`6: a number ${kind}`, () => {
    for (const [text, number, country] of rows) {
      it(`${text} is ${number} in ${country ?? 'no country'}`, () => {
        assert.deepEqual(parsePhone(text), { number, country });
        const recipient = country === undefined ? PHONE_PROBLEMS.nowhere : { to: number, country };
        assert.deepEqual(parsePhoneRecipient(text), recipient);
      });
    }
  });
}

const REFUSED: Readonly<Record<'form' | 'impossible', readonly string[]>> = {
  form: [
    ...['', ' ', '+', '14165550123', '4165550123', '0014165550123', '++14165550123', '+1416555+0123'],
    ...['+1416555O123', '+1 416 555 0123 ext. 5', '+14165550123;ext=5', 'whatsapp:+14165550123', 'mailto:+14165550123'],
    ...['+1416\n5550123', '+1416\t5550123', '+1416,5550123', '+1\\416\\5550123', 'tel:5550123;phone-context=+1416'],
    ...['tel:tel:+14165550123', '+1416\u200B5550123'],
    ...['+14165550123\0', `+1${' '.repeat(90)}4165550123`, `+${'1'.repeat(100_000)}`],
  ],
  impossible: [
    ...['+1', '+1 5550123', '+1 416 555 012', '+1 416 555 01234', '+49 110', '+49 0044800'],
    ...['+49 151 2345 6789 0123', '+0 416 555 0123', '+999 123 456 789', '+()', '+800 1234 567', `+1${'0'.repeat(40)}`],
  ],
};

for (const problem of ['form', 'impossible'] as const) {
  describe(`6: ${PHONE_PROBLEMS[problem]}`, () => {
    for (const text of REFUSED[problem]) {
      it(JSON.stringify(text.slice(0, 40)), () => assert.equal(parsePhone(text), PHONE_PROBLEMS[problem]));
    }
  });
}

it('6: a parsed number is E.164 and parses to itself', () => {
  const parts = fc.constantFrom('+', '0', '1', '2', '4', '7', '9', '44', '262', '590', '800', ' ', '-', '(', ')', '.');
  let read = 0;
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 20 }), (tail) => {
      const phone = parsePhone(`+${tail.join('')}`);
      if (typeof phone === 'string') return;
      read++;
      assert.match(phone.number, /^\+[1-9]\d{4,14}$/);
      assert.ok(phone.country === undefined || /^[A-Z]{2}$/.test(phone.country));
      assert.deepEqual(parsePhone(phone.number), phone);
    }),
    { numRuns: 5_000 },
  );
  assert.ok(read > 50, `${read} were read`);
});

it('restores the plus that a query string decodes to a space', () => {
  assert.equal(phoneInQuery(' 14165550123'), '+14165550123');
  assert.equal(phoneInQuery('+1 416 555 0123'), '+1 416 555 0123');
  assert.equal(phoneInQuery('14165550123'), '14165550123');
  assert.equal(phoneInQuery(' +14165550123'), ' +14165550123');
});

describe('the numbers that WhatsApp may report for a user', () => {
  for (const [what, forms] of [
    ['in Brazil have the ninth digit or lack it', ['+551187654321', '+5511987654321']],
    [
      'in Brazil have the ninth digit or lack it, also if the number begins with 9',
      ['+556199654321', '+5561999654321'],
    ],
    ['of a landline in Brazil are that number', ['+551132654321']],
    ['in Argentina have a 9 after the country code or lack it', ['+541123456789', '+5491123456789']],
    ['elsewhere are that number', ['+14165550123']],
    ['are the id of a user without a number', ['BR.13491208655302741918']],
  ] as const) {
    it(what, () => {
      for (const number of forms) assert.deepEqual(whatsAppForms(number), forms);
    });
  }
});
