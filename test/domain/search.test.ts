import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isMatch, parseAddressFilter, type Search, wordsOf, wordsProblem } from '../../src/domain/email/search.ts';

const EMAIL = {
  from: 'Acme <Hello@Acme.example>',
  to: ['"Lovelace, Ada" <Ada@Example.net>', 'b@bücher.example'],
  cc: ['c@sub.example.net'],
  bcc: ['hidden@bcc.example'],
  subject: 'Ihre Rechnung No. 42: ÜBERBLICK, don’t reply',
};

/** What each search of this email finds. */
const SEARCHES: readonly (readonly [Search, boolean])[] = [
  [{ to: 'ada@example.net' }, true],
  [{ to: '@example.net' }, true],
  [{ to: '@sub.example.net' }, true],
  [{ to: '@net' }, false],
  [{ to: '@ple.net' }, false],
  [{ to: 'da@example.net' }, false],
  [{ to: 'hidden@bcc.example' }, true],
  [{ to: '@xn--bcher-kva.example' }, true],
  [{ to: 'hello@acme.example' }, false],
  [{ from: 'hello@acme.example' }, true],
  [{ from: '@acme.example' }, true],
  [{ from: '@example.net' }, false],
  [{ subject: ['rechnung', '42'] }, true],
  [{ subject: ['überblick'] }, true],
  [{ subject: ['blick'] }, false],
  [{ subject: ['rechnung', 'missing'] }, false],
  [{ to: 'ada@example.net', from: '@acme.example', subject: ['no'] }, true],
  [{ to: 'ada@example.net', from: '@other.example', subject: ['no'] }, false],
];

describe('a search', () => {
  for (const [search, isFound] of SEARCHES) {
    it(`for ${JSON.stringify(search)} ${isFound ? 'finds' : 'does not find'} the email`, () => {
      assert.equal(isMatch(EMAIL, search), isFound);
    });
  }
});

describe('an address filter', () => {
  for (const [text, address] of [
    ['Ada@Example.NET', 'ada@example.net'],
    [' ada@example.net ', 'ada@example.net'],
    ['@Bücher.example', '@xn--bcher-kva.example'],
    ['b@bücher.example', 'b@xn--bcher-kva.example'],
  ] as const) {
    it(`is read from "${text}"`, () => {
      assert.deepEqual(parseAddressFilter(text), { address });
    });
  }

  for (const text of ['', ' ', 'ada', '@', '@net', 'example.net', 'a@b@c.example', '@a b.example']) {
    it(`is not read from "${text}"`, () => {
      assert.equal(typeof parseAddressFilter(text), 'string');
    });
  }
});

describe('the words of a text', () => {
  it('are runs of letters and digits in lower case, each once', () => {
    assert.deepEqual(wordsOf('Re: your RECEIPT, receipt no. 4-2 für Äpfel'), [
      ...['2', '4', 'für', 'no', 're', 'receipt', 'your', 'äpfel'],
    ]);
  });

  for (const text of ['', ' ', '!!!', 'a b c d e f g h i j k', 'a'.repeat(999)]) {
    it(`are refused in "${text.slice(0, 30)}"`, () => {
      assert.match(wordsProblem(text) ?? '', /^must /);
    });
  }
});
