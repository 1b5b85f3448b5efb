import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Problem } from '../../src/domain/errors.ts';
import { RULES } from '../../src/domain/rules.ts';

/** As a request brings them: own properties whatever their names. */
const json = (pairs: readonly (readonly [name: string, value: string])[]) =>
  JSON.parse(
    `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`,
  ) as Record<string, string>;

const firstOf = (problems: Problem | readonly Problem[] | undefined): Problem | undefined => [problems ?? []].flat()[0];
const headers = (value: Record<string, string>) => firstOf(RULES.headers(value));
const header = (name: string, value = 'x') => firstOf(RULES.headers(json([[name, value]])));

const MESSAGES = {
  name: 'must be named in printable ASCII without spaces or colons',
  'name length': 'must have a name of at most 126 characters',
  ours: 'is set by Sendwright and cannot be given',
  control_header: 'is a control header of an email provider; other custom headers are allowed',
  twice: 'appears twice; header names are case-insensitive',
  value: 'must be at most 870 characters',
  control: 'must not contain control characters or line breaks',
  unicode: 'must be well-formed Unicode',
} as const;

describe('custom headers', () => {
  it('may be none, and at most 20', () => {
    const many = (count: number) => json(Array.from({ length: count }, (_, index) => [`X-${index}`, 'x']));
    assert.equal(headers({}), undefined);
    assert.equal(headers(many(20)), undefined);
    assert.deepEqual(headers(many(21)), { message: 'must have at most 20 headers' });
  });

  it('have names of any printable ASCII but the colon and the space', () => {
    for (let code = 0; code < 0x250; code++) {
      const name = `X${String.fromCharCode(code)}Y`;
      const allowed = code > 0x20 && code < 0x7f && name !== 'X:Y';
      assert.deepEqual(
        header(name),
        allowed ? undefined : { path: name, message: MESSAGES.name },
        `U+${code.toString(16)}`,
      );
    }
    for (const name of ['', 'X-A ', ' X-A', 'X-😀', 'X-\u2028', 'X-\uD800', 'X\r\nBcc', 'Ｘ-A'])
      assert.deepEqual(header(name), { path: name, message: MESSAGES.name });
  });

  it('have names of 1 to 126 characters', () => {
    assert.equal(header('X'), undefined);
    assert.equal(header('X'.repeat(126)), undefined);
    assert.deepEqual(header('X'.repeat(127)), { path: 'X'.repeat(126), message: MESSAGES['name length'] });
  });

  it('are cut in the error message', () => {
    for (const name of ['X'.repeat(100_000), 'é'.repeat(100_000)]) assert.equal(header(name)?.path?.length, 126);
  });

  // Copied by hand from rule 4 of the interface.
  for (const name of [
    ...'From Sender To Cc Bcc Reply-To Subject Date Message-ID Return-Path MIME-Version Content-Type'.split(' '),
    ...'Content-Transfer-Encoding Content-Disposition DKIM-Signature Received Resent-From Resent-Anything'.split(' '),
    'Resent-',
  ]) {
    it(`may not be ${name}, in any case`, () => {
      const mixed = name.replace(/./g, (letter, at: number) => (at % 2 ? letter.toUpperCase() : letter.toLowerCase()));
      for (const one of [name, name.toLowerCase(), name.toUpperCase(), mixed])
        assert.deepEqual(header(one), { path: one, message: MESSAGES.ours });
    });
  }

  for (const name of [
    ...'X-PM-Message-Stream X-PM-Anything X-SMTPAPI X-SG-EID X-SES-Source-ARN X-Mailgun-Variables X-MC-Tags'.split(' '),
    ...'X-MSYS-API X-Mailjet-Campaign X-MJ-CustomID X-Mailin-Custom X-Sib-Sandbox sib-anything'.split(' '),
    ...'X-ElasticEmail-Channel IsTransactional PoolName X-MT-Category X-MT-Custom-Variables X-SMTP2GO-Tag'.split(' '),
    ...'X-xsMailingId X-xsMessageId X-Postal-MsgID X-MailerSend-Tags Resend-Idempotency-Key X-Virtual-MTA'.split(' '),
  ]) {
    it(`may not be ${name}, a control header of a provider, in any case`, () => {
      for (const one of [name, name.toLowerCase(), name.toUpperCase()])
        assert.deepEqual(header(one), { path: one, message: MESSAGES.control_header });
    });
  }

  for (const name of [
    ...'Authentication-Results X-Original-Authentication-Results ARC-Seal ARC-Message-Signature Received-SPF'.split(
      ' ',
    ),
    ...'Delivered-To X-Original-To Envelope-To X-Received DKIM-Filter DomainKey-Signature'.split(' '),
    ...'X-MS-Exchange-Organization-SCL X-MS-Exchange-Organization-AuthAs X-Forefront-Antispam-Report'.split(' '),
    ...'X-Spam-Status X-Spam-Flag X-Rspamd-Score'.split(' '),
  ]) {
    it(`may not be ${name}, which mail servers write, in any case`, () => {
      for (const one of [name, name.toLowerCase(), name.toUpperCase()]) {
        const message = 'is written by mail servers and cannot be given; other custom headers are allowed';
        assert.deepEqual(header(one), { path: one, message });
      }
    });
  }

  it('may be ordinary ones of programs, lists and replies', () => {
    for (const name of [
      ...'X-Entity-Ref-ID X-Custom Feedback-ID List-Unsubscribe List-ID List-Help Auto-Submitted In-Reply-To'.split(
        ' ',
      ),
      ...'References Precedence X-Priority Importance X-Mailer X-Auto-Response-Suppress Organization Keywords'.split(
        ' ',
      ),
      ...'Disposition-Notification-To X-MSMail-Priority X-Google-Something X-MTA X-Mailinator X-Spammer Siblings'.split(
        ' ',
      ),
    ]) {
      assert.equal(header(name), undefined, name);
    }
  });

  it('may have names that are only like those', () => {
    const names = 'X-PMX PM-Metadata-email X-SMTPAPI-Not X-From From-X Fro Resent X-Resent-To Content-Language';
    for (const name of `${names} List-Unsubscribe Reply_To`.split(' ')) assert.equal(header(name), undefined, name);
  });

  it('may be named like members of objects', () => {
    for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '0']) {
      assert.equal(header(name), undefined, name);
      assert.deepEqual(header(name, 'a\nb'), { path: name, message: MESSAGES.control });
    }
    const twice = json([
      ['__proto__', 'x'],
      ['__PROTO__', 'x'],
    ]);
    assert.deepEqual(headers(twice), { path: '__PROTO__', message: MESSAGES.twice });
  });

  it('appear once each, in whatever case', () => {
    const twice = json([
      ['X-Ref', '1'],
      ['X-Other', '2'],
      ['x-REF', '3'],
    ]);
    assert.deepEqual(headers(twice), { path: 'x-REF', message: MESSAGES.twice });
  });

  it('have values of at most 870 code points', () => {
    for (const letter of ['x', 'é', '山', '😀']) {
      assert.equal(header('X-A', letter.repeat(870)), undefined);
      assert.deepEqual(header('X-A', letter.repeat(871)), { path: 'X-A', message: MESSAGES.value });
    }
  });

  it('have values of one line without controls, the tab among them', () => {
    for (const value of ['', ' ', 'a b', 'grüße', '山田 😀', 'a:b', '\u0085', '\u200D'])
      assert.equal(header('X-A', value), undefined);
    for (const value of ['a\r\nBcc: e@x.example', ...Array.from('\r\n\0\t\x1B\x7F\u2028\u2029')])
      assert.deepEqual(header('X-A', value), { path: 'X-A', message: MESSAGES.control }, JSON.stringify(value));
    assert.deepEqual(header('X-A', '\uD83D'), { path: 'X-A', message: MESSAGES.unicode });
  });

  it('never contain a line break', () => {
    const text = fc.string({
      unit: fc.oneof(fc.constantFrom('\r', '\n', ':', ' ', 'a', 'É'), fc.string({ minLength: 1, maxLength: 1 })),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 4 }), (pairs) => {
        const value = json(pairs);
        if (headers(value)) return;
        for (const [name, one] of Object.entries(value)) assert.doesNotMatch(`${name}: ${one}`, /[\r\n]/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('tags', () => {
  const tags = (...names: string[]) => RULES['unique-tags'](names.map((name) => ({ name })));

  it('have names that are unique within the email, case and all', () => {
    assert.equal(tags(), undefined);
    assert.equal(tags('a', 'b', 'A', '__proto__', 'constructor'), undefined);
    assert.deepEqual(tags('a', 'b', 'a'), {
      path: '2.name',
      message: 'appears twice; tag names are unique within a message',
    });
    assert.equal(tags('__proto__', '__proto__')?.path, '1.name');
  });
});

describe('html and text', () => {
  const values = { missing: undefined, null: null, empty: '', given: 'x' } as const;
  type Value = keyof typeof values;
  /** Which of the two is at fault, by html and then by text. */
  const FAULT: Record<Value, Record<Value, 'html' | 'text' | undefined>> = {
    missing: { missing: 'html', null: 'html', empty: 'text', given: undefined },
    null: { missing: 'html', null: 'html', empty: 'text', given: undefined },
    empty: { missing: 'html', null: 'html', empty: 'html', given: undefined },
    given: { missing: undefined, null: undefined, empty: undefined, given: undefined },
  };
  for (const html of Object.keys(FAULT) as Value[]) {
    for (const text of Object.keys(FAULT[html]) as Value[]) {
      const fault = FAULT[html][text];
      it(`are ${fault ? 'refused' : 'accepted'} when html is ${html} and text is ${text}`, () => {
        const email = {
          ...(html !== 'missing' && { html: values[html] as string | null }),
          ...(text !== 'missing' && { text: values[text] as string | null }),
        };
        assert.equal(RULES['some-body'](email)?.path, fault);
      });
    }
  }
});

describe('the rules of one value', () => {
  it('return the messages of their functions', () => {
    assert.equal(RULES.mailbox('Ada <ada@example.com>'), undefined);
    assert.deepEqual(RULES.mailbox('ada'), { message: 'must be local@domain or Name <local@domain>' });
    assert.equal(RULES['one-line']('grüße 😀'), undefined);
    for (const bad of ['\r', '\n', '\0', '\t', '\u2028'])
      assert.deepEqual(RULES['one-line'](bad), { message: MESSAGES.control });
    assert.equal(RULES.body('a\r\n\tb\u2028\x7F'), undefined);
    assert.deepEqual(RULES.body('a\0'), { message: 'must not contain NUL characters' });
    assert.deepEqual(RULES.body('\uDE00'), { message: MESSAGES.unicode });
    assert.equal(RULES.instant('2026-03-01T09:30:00Z'), undefined);
    assert.deepEqual(RULES.instant('2026-03-01'), {
      message: 'must be an ISO 8601 instant with an offset, such as 2026-03-01T09:30:00Z',
    });
  });
});
