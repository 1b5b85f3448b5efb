import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { bodyProblem, characters, controlProblem, formatWait } from '../../src/lib/text.ts';
import { anyString } from '../domain/near-addresses.ts';

const CONTROL = 'must not contain control characters or line breaks';
const MALFORMED = 'must be well-formed Unicode';

describe('the length of a text', () => {
  it('is counted in code points', () => {
    for (const [text, length] of [
      ['', 0],
      ['abc', 3],
      ['é', 1],
      ['e\u0301', 2],
      ['山田', 2],
      ['😀', 1],
      ['a😀b', 3],
      ['👩\u200D👧', 3],
    ] as const)
      assert.equal(characters(text), length, text);
  });

  it('is what iterating over it gives', () => {
    const surrogates = fc.string({
      unit: fc.constantFrom('a', '\uD83D', '\uDE00', '😀', '\uD800', '\uDFFF', '\uE000'),
    });
    fc.assert(
      fc.property(fc.oneof(anyString, surrogates, fc.string({ unit: 'binary' })), (text) => {
        assert.equal(characters(text), Array.from(text).length);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('a time to wait', () => {
  it('is rounded up to minutes, and to hours from two hours on', () => {
    for (const [seconds, text] of [
      [1, 'a minute'],
      [60, 'a minute'],
      [61, '2 minutes'],
      [7_140, '119 minutes'],
      [7_141, '2 hours'],
      [7_201, '3 hours'],
      [86_400, '24 hours'],
    ] as const) {
      assert.equal(formatWait(seconds), text);
    }
  });
});

describe('a text of one line', () => {
  it('holds no C0 control, the tab among them, no DEL and no line break of Unicode', () => {
    const refused = [...Array(0x20).keys(), 0x7f, 0x2028, 0x2029];
    for (let code = 0; code < 0x3000; code++) {
      const expected = refused.includes(code) ? CONTROL : undefined;
      assert.equal(controlProblem(`a${String.fromCharCode(code)}b`), expected, `U+${code.toString(16)}`);
    }
  });

  it('holds no lone surrogate', () => {
    for (const text of ['\uD83D', 'a\uDE00', '\uDE00\uD83D', '😀\uD83D']) assert.equal(controlProblem(text), MALFORMED);
    assert.equal(controlProblem('😀'), undefined);
  });
});

describe('a body', () => {
  it('may hold everything but NUL and lone surrogates', () => {
    assert.equal(bodyProblem('a\0b'), 'must not contain NUL characters');
    for (const text of ['\uD83D', 'a\uDE00b', '\uDE00\uD83D']) assert.equal(bodyProblem(text), MALFORMED);
    for (let code = 1; code <= 0xffff; code++)
      if (code < 0xd800 || code > 0xdfff) assert.equal(bodyProblem(String.fromCharCode(code)), undefined);
  });
});
