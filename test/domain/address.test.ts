import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressInQuery, type Mailbox, parseMailbox } from '../../src/domain/email/address.ts';

/** The error messages; each case below names the one that helps its caller most. */
const MESSAGES = {
  form: 'must be local@domain or Name <local@domain>',
  'one @': 'must be one address with one @',
  'one address': 'must be one address; a name that contains any of ()<>[]:;@\\," is written in double quotes',
  quotes: 'must close the double quotes around the name',
  ascii: 'must have an ASCII local part before the @',
  local: 'must have a plain local part before the @: no spaces, quotes, comments or stray dots',
  'encoded word': 'must not have an encoded word before the @',
  'local length': 'must have at most 64 characters before the @',
  domain: 'must have a domain name after the @, such as example.com',
  'address length': 'must be at most 254 characters',
  'field length': 'must be at most 998 characters',
  control: 'must not contain control characters or line breaks',
  invisible: 'must not contain invisible characters',
  unicode: 'must be well-formed Unicode',
} as const;

type Accepted = readonly [title: string, text: string, name: string | null, local: string, domain: string];
type Refused = readonly [title: string, text: string, message: keyof typeof MESSAGES];

function mailbox([, , name, local, domain]: Accepted): Mailbox {
  return { name, local, domain, address: `${local}@${domain}` };
}

function accepts(cases: readonly Accepted[]): void {
  for (const one of cases) it(`accepts ${one[0]}`, () => assert.deepEqual(parseMailbox(one[1]), mailbox(one)));
}

function refuses(cases: readonly Refused[]): void {
  for (const [title, text, message] of cases)
    it(`refuses ${title}`, () => assert.equal(parseMailbox(text), MESSAGES[message]));
}

/** A domain of exactly `length` characters whose labels are as long as they may be. */
function domainOf(length: number): string {
  const labels: string[] = [];
  for (let left = length - '.com'.length; left > 0; left -= 64) labels.push('d'.repeat(Math.min(63, left)));
  const domain = `${labels.join('.')}.com`;
  assert.equal(domain.length, length);
  return domain;
}

describe('the two forms of an address', () => {
  accepts([
    ['local@domain', 'ada@example.com', null, 'ada', 'example.com'],
    ['Name <local@domain>', 'Ada <ada@example.com>', 'Ada', 'ada', 'example.com'],
    ['brackets without a name', '<ada@example.com>', null, 'ada', 'example.com'],
    ['a quoted name of spaces, as none', '"  " <ada@example.com>', null, 'ada', 'example.com'],
    ['no space before the bracket', 'Ada<ada@example.com>', 'Ada', 'ada', 'example.com'],
    ['spaces around name, brackets and address', '  Ada   <  ada@example.com  >  ', 'Ada', 'ada', 'example.com'],
    ['spaces inside the quotes, trimmed', '" Ada " <ada@example.com>', 'Ada', 'ada', 'example.com'],
    ['a no-break space around the parts', '\u00A0Ada\u00A0<ada@example.com>\u00A0', 'Ada', 'ada', 'example.com'],
    ['a local part in the case it was given, a domain in lower case', 'ADA@EXAMPLE.Com', null, 'ADA', 'example.com'],
  ]);
  refuses([
    ['nothing', '', 'form'],
    ['a word', 'ada', 'form'],
    ['a name with a word in brackets', 'Ada <ada>', 'form'],
    ['a bracket that is not closed', 'Ada <ada@example.com', 'local'],
    ['a bracket that is not opened', 'ada@example.com>', 'domain'],
    ['doubled brackets', '<<ada@example.com>>', 'one address'],
    ['a mailto URL', 'mailto:ada@example.com', 'local'],
    ['two addresses with a comma', 'ada@example.com, bob@example.com', 'one @'],
    ['two addresses in brackets', '<ada@example.com>, <bob@example.com>', 'one address'],
    ['a trailing comma', 'ada@example.com,', 'domain'],
    ['a group of a bracketed address', 'Friends: <ada@example.com>', 'one address'],
    ['a route of two', '<@example.net,@example.org:ada@example.com>', 'one @'],
    ['a comment in the local part', 'ada(x)@example.com', 'local'],
    ['a comment in the name', 'Ada (x) <ada@example.com>', 'one address'],
    ['a comment after the brackets', 'Ada <ada@example.com> (x)', 'local'],
    ['an encoded word as the whole address', '=?utf-8?q?ada=40example.com?=', 'form'],
    ['a field over 998 characters', `"${'n'.repeat(979)}" <ada@example.com>`, 'field length'],
  ]);
  it('accepts a field of 998 characters, counted in code points', () => {
    const name = '😀'.repeat(978);
    const text = `"${name}" <ada@example.com>`;
    assert.equal(Array.from(text).length, 998);
    assert.deepEqual(parseMailbox(text), mailbox(['', '', name, 'ada', 'example.com']));
  });
});

describe('local parts', () => {
  accepts([
    ['every character of an atom', "!#$%&'*+-/=?^_`{|}~@example.com", null, "!#$%&'*+-/=?^_`{|}~", 'example.com'],
    ['dots between atoms', 'a.b.c@example.com', null, 'a.b.c', 'example.com'],
    ['a tag after +', 'ada+news@example.com', null, 'ada+news', 'example.com'],
    ['64 characters', `${'l'.repeat(64)}@example.com`, null, 'l'.repeat(64), 'example.com'],
    ['an address of 254 characters', `ada@${domainOf(250)}`, null, 'ada', domainOf(250)],
    ['64 characters in one of 254', `${'l'.repeat(64)}@${domainOf(189)}`, null, 'l'.repeat(64), domainOf(189)],
  ]);
  refuses([
    ['none', '@example.com', 'local'],
    ['65 characters', `${'l'.repeat(65)}@example.com`, 'local length'],
    ['an address of 255 characters', `ada@${domainOf(251)}`, 'address length'],
    ['an address of 255 characters as A-label', `ada@ü.${domainOf(243)}`, 'address length'],
    ['a dot at the beginning', '.ada@example.com', 'local'],
    ['a dot at the end', 'ada.@example.com', 'local'],
    ['two dots in a row', 'a..b@example.com', 'local'],
    ['a space', 'a b@example.com', 'local'],
    ['a quoted local part with a space', '"a b"@example.com', 'local'],
    ['a letter beyond ASCII', 'adä@example.com', 'ascii'],
    ['a full-width @', 'ada＠example.com', 'form'],
    ['an emoji', '😀@example.com', 'ascii'],
    ['an encoded word', '=?utf-8?q?ada=40example.net?=@example.com', 'encoded word'],
    ['an encoded word with more around it', 'a=?utf-8?b?YUBi?=b@example.com', 'encoded word'],
  ]);
});

describe('display names', () => {
  accepts([
    ['dots', 'Dr. A. Lovelace <ada@example.com>', 'Dr. A. Lovelace', 'ada', 'example.com'],
    ['several words', 'Ada   King <ada@example.com>', 'Ada   King', 'ada', 'example.com'],
    ['an apostrophe', "Ada O'Brien <ada@example.com>", "Ada O'Brien", 'ada', 'example.com'],
    ['Latin letters beyond ASCII', 'Žofie Łęcka <ada@example.com>', 'Žofie Łęcka', 'ada', 'example.com'],
    ['Han, with an ideographic space', '山田\u3000太郎 <ada@example.com>', '山田\u3000太郎', 'ada', 'example.com'],
    ['an emoji with a variation selector', 'Ada ❤\uFE0F <ada@example.com>', 'Ada ❤\uFE0F', 'ada', 'example.com'],
    ['a Han variant', '葛\u{E0100} <ada@example.com>', '葛\u{E0100}', 'ada', 'example.com'],
    ['every special, quoted', '"()<>[]:;@,." <ada@example.com>', '()<>[]:;@,.', 'ada', 'example.com'],
    ['an escaped quote', '"Ada \\"Al\\" King" <ada@example.com>', 'Ada "Al" King', 'ada', 'example.com'],
    ['an escaped backslash', '"a\\\\b" <ada@example.com>', 'a\\b', 'ada', 'example.com'],
    ['an escaped letter', '"\\Ada" <ada@example.com>', 'Ada', 'ada', 'example.com'],
    ['an escaped emoji', '"\\😀" <ada@example.com>', '😀', 'ada', 'example.com'],
    ['a quoted list', '"Eve <e@x.net>, Bob" <ada@example.com>', 'Eve <e@x.net>, Bob', 'ada', 'example.com'],
    ['names of object members', '__proto__ <constructor@example.com>', '__proto__', 'constructor', 'example.com'],
    ['an encoded word, left as it is', '=?utf-8?q?Eve?= <ada@example.com>', '=?utf-8?q?Eve?=', 'ada', 'example.com'],
  ]);
  refuses([
    ...Array.from('()>[]:;@\\,').map((special): Refused => [
      `${special} without quotes`,
      `A${special}B <ada@example.com>`,
      'one address',
    ]),
    ['a quote inside', 'Ada "Al" King <ada@example.com>', 'one address'],
    ['a quote that is not closed', '"Ada <ada@example.com>', 'quotes'],
    ['a quote whose end is escaped', '"Ada\\" <ada@example.com>', 'quotes'],
    ['text after the quotes', '"Ada" King <ada@example.com>', 'quotes'],
    ['a quoted name and a bracket', '"Ada" <eve@example.net> <ada@example.com>', 'quotes'],
  ]);
});

describe('characters that no address may hold', () => {
  const CONTROLS = [...Array.from('\0\t\n\v\r\x1B\x1F\x7F\u2028\u2029'), '\r\nBcc: eve@example.net'];
  const INVISIBLE = Array.from(
    '\u00AD\u034F\u061C\u115F\u180E\u200B\u200C\u200D\u200E\u200F\u202A\u202B\u202C\u202D\u202E\u2060\u2061\u2064' +
      '\u2066\u2067\u2068\u2069\u206A\u206F\u3164\uFEFF\uFFA0\uFFF9\u{E0001}\u{E0041}\u{E007F}\u0085',
  );
  const positions: readonly (readonly [position: string, at: (bad: string) => string])[] = [
    ['in the local part', (bad) => `a${bad}a@example.com`],
    ['in the domain', (bad) => `ada@exa${bad}mple.com`],
    ['in a name', (bad) => `A${bad}a <ada@example.com>`],
    ['in a quoted name', (bad) => `"A${bad}a" <ada@example.com>`],
    ['escaped in a quoted name', (bad) => `"A\\${bad}a" <ada@example.com>`],
    ['behind the bracket', (bad) => `Ada <ada@example.com>${bad}`],
  ];
  for (const [position, at] of positions) {
    it(`refuses control characters ${position}`, () => {
      for (const bad of CONTROLS) assert.equal(parseMailbox(at(bad)), MESSAGES.control, JSON.stringify(bad));
    });
    it(`refuses zero-width and bidirectional characters ${position}`, () => {
      for (const bad of INVISIBLE) assert.equal(parseMailbox(at(bad)), MESSAGES.invisible, JSON.stringify(bad));
    });
    it(`refuses lone surrogates ${position}`, () => {
      for (const bad of ['\uD83D', '\uDE00', '\uDE00\uD83D'])
        assert.equal(parseMailbox(at(bad)), MESSAGES.unicode, JSON.stringify(bad));
    });
  }
});

describe('joiners in a display name', () => {
  for (const name of ['علی‌رضا', 'ක්‍රිස්', 'र्‍यश', '👨‍👩‍👧', '🏳️‍🌈', '👩🏽‍💻 Ada']) {
    for (const text of [`${name} <a@x.test>`, `"${name}" <a@x.test>`])
      it(`are spelling in ${text}`, () => assert.equal((parseMailbox(text) as Mailbox).name, name));
  }
  for (const text of [
    ...[
      'A\u200Dda <a@x.test>',
      'ع\u200C <a@x.test>',
      '\u200Dع <a@x.test>',
      'ع\u200Ca <a@x.test>',
      'ع\u200C\u200Cع <a@x.test>',
    ],
    ...[
      '👨\u200D <a@x.test>',
      '👨\u200C👩 <a@x.test>',
      'ع\u200Bع <a@x.test>',
      'ع\u202Eع <a@x.test>',
      'ع\uFEFFع <a@x.test>',
    ],
    ...['x <ع\u200Cع@x.test>', 'ع\u200Cع@x.test', 'я\u200Dя <a@x.test>', 'x <a@ع\u200Cع.test>'],
  ])
    it(`are refused in ${JSON.stringify(text)}`, () => assert.equal(parseMailbox(text), MESSAGES.invisible));
});

describe('an address in a query', () => {
  for (const [text, address] of [
    ['you tag@example.com', 'you+tag@example.com'],
    [' you+tag@example.com ', 'you+tag@example.com'],
    ['Ada L <you tag@example.com>', 'Ada L <you+tag@example.com>'],
    ['@example.com', '@example.com'],
  ] as const)
    it(`${text} is ${address}`, () => assert.equal(addressInQuery(text), address));
});
