import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type LargeJson, LargeJsonReader } from '../../src/http/plugins/large-json.ts';

/** Reads a text in pieces of `length` bytes. */
function read(text: string | Buffer, length = 65_536): LargeJson {
  const bytes = Buffer.from(text as string);
  const reader = new LargeJsonReader();
  for (let at = 0; at < bytes.length; at += length) reader.feed(bytes.subarray(at, at + length));
  return reader.end();
}

function parse(text: string | Buffer, length?: number): unknown {
  const json = read(text, length);
  if (!('value' in json)) throw new Error(json.problem);
  return json.value;
}

/** The result of JSON.parse, or undefined for a text that is not JSON. */
function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Any JSON, with white space and escapes. */
const spelled = fc
  .tuple(fc.jsonValue(), fc.constantFrom(undefined, ' ', '\t', '\r\n '), fc.boolean())
  .map(([value, space, escape]) => {
    const text = JSON.stringify(value, null, space);
    return escape
      ? text.replace(/[\u0080-\uffff/]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : text;
  })
  .filter((text) => !text.includes('__proto__'));

/** Bytes of a piece: few, so that every token is cut at every position. */
const pieces = fc.constantFrom(1, 2, 3, 4, 5, 7, 11, 1_000);

describe('LargeJsonReader', () => {
  it('returns the value that JSON.parse returns', () => {
    fc.assert(
      fc.property(spelled, pieces, (text, length) => assert.deepEqual(parse(text, length), JSON.parse(text))),
      { numRuns: 1_000 },
    );
  });

  it('refuses exactly the texts that JSON.parse refuses', () => {
    const changed = fc
      .tuple(
        spelled,
        fc.nat(),
        fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '1', '-', ' ', 'e', '\\u', '\n'),
      )
      .map(([text, at, bite]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + bite + text.slice(place + (at % 3));
      })
      // A lone surrogate cannot be sent.
      .filter((text) => text.isWellFormed() && !text.includes('__proto__'));
    fc.assert(
      fc.property(changed, pieces, (text, length) => {
        const expected = parsed(text);
        if (expected) assert.deepEqual(parse(text, length), expected.value, text);
        else assert.throws(() => parse(text, length), SyntaxError, text);
      }),
      { numRuns: 3_000 },
    );
  });

  const NOT_JSON = [
    ...['', ' ', '{', '[', '"', '{"', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '[1,]', '[,1]', '{,}', '{1:2}'],
    ...['[1 2]', '{"a" 1}', '{"a":1 "b":2}', '[1}', '{"a":1]', ']', ',', '1 2', '{}{}', 'nul', 'True', '01', '1.'],
    ...['.5', '+1', '1e', '0x1', 'NaN', '-', '"\\x"', '"\\u12"', '"\\u"', '"\\', '"\\"', '"a\nb"', "'a'", '[[]'],
    ...['\u00a01', '1\u00a0', '\ufeff\ufeff1', '// x\n1', '"a"b', '\u2028', '\0'],
  ];
  it('refuses texts that are not JSON', () => {
    for (const text of NOT_JSON) {
      assert.equal(parsed(text), undefined, text);
      for (const length of [1, 2, 1_000]) assert.throws(() => parse(text, length), SyntaxError, text);
    }
  });

  it('reads a byte order mark, and names of object members as keys', () => {
    assert.equal(parse('\ufeff1'), 1);
    const named = parse('{"toString":1,"constructor":2,"a":1,"a":2}') as object;
    assert.deepEqual(Object.entries(named), [
      ['toString', 1],
      ['constructor', 2],
      ['a', 2],
    ]);
  });

  it('reads long strings piece by piece, cut at any character', () => {
    for (const unit of ['a', 'é', '漢', '👋', '\\', '"', '\n', '👋"\\é', 'a\u2028']) {
      for (const shift of [0, 1, 2, 3, 5]) {
        const value = { k: 'x'.repeat(shift) + unit.repeat(70_000), ['y'.repeat(65_535 + shift)]: 1 };
        assert.deepEqual(parse(JSON.stringify(value)), value);
        const escaped = JSON.stringify(value).replace(/[^\x20-\x7e]/g, (c) =>
          [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
        );
        assert.deepEqual(parse(escaped), value);
      }
    }
    for (const end of ['', '\\', '\\u00', '\n"', '\\u00"', '\\q"']) {
      assert.throws(() => parse(`"${'a'.repeat(65_530)}${end}`), SyntaxError, JSON.stringify(end));
    }
  });

  it('refuses bytes that are not UTF-8, also in pieces', () => {
    for (const hex of ['22ff22', '22c322', '22c0af22', '22eda08022', '22f490808022', '22f09f9822', '22e6bc', '80']) {
      for (const length of [1, 2, 3, 9]) {
        assert.throws(() => parse(Buffer.from(hex, 'hex'), length), SyntaxError, hex);
      }
    }
  });

  it('reads 500,000 levels', () => {
    const text = '['.repeat(500_000) + ']'.repeat(500_000);
    let depth = 0;
    for (let value = parse(text); Array.isArray(value); value = value[0] as unknown) depth++;
    assert.equal(depth, 500_000);
  });

  const PROBLEM = 'the request body must not contain a key __proto__, or prototype in constructor';
  for (const [text, refused] of [
    ['{"__proto__":1}', true],
    ['[{"a":{"\\u005f_proto__":{}}}]', true],
    ['{"constructor":{"prototype":1}}', true],
    ['{"a":[{"constructor":{"x":1,"prototype":{}}}]}', true],
    ['{"constructor":1,"prototype":2}', false],
    ['{"constructor":[{"prototype":1}]}', false],
    ['{"proto":"__proto__"}', false],
  ] as const) {
    it(`${refused ? 'refuses' : 'accepts'} ${text}`, () => {
      const json = read(text);
      assert.deepEqual(json, refused ? { path: undefined, problem: PROBLEM } : { value: JSON.parse(text) as unknown });
    });
  }

  it('builds arrays of 10,000 items and objects of 1,000 fields, and reports the path of longer ones', () => {
    const array = (n: number) => `[${Array<string>(n).fill('{}').join()}]`;
    const object = (n: number) => `{${Array.from({ length: n }, (_, i) => `"k${i}":0`).join()}}`;
    parse(`{"a":${array(10_000)}}`);
    parse(`{"a":${object(1_000)}}`);
    for (const [text, path, problem] of [
      [`{"x":1,"a":${array(10_001)}}`, 'a', 'must have at most 10000 items'],
      [`{"a":[1,{"b":${array(20_000)}}]}`, 'a.1.b', 'must have at most 10000 items'],
      [array(10_001), undefined, 'must have at most 10000 items'],
      [`{"a":[${object(1_001)}]}`, 'a.0', 'must have at most 1000 fields'],
      [`[${Array<string>(400).fill(array(9_999)).join()}]`, undefined, 'the request body holds too many values'],
    ] as const) {
      assert.deepEqual(read(text), { path, problem });
      // A value that is not built must be JSON, too.
      assert.throws(() => parse(text.slice(0, -1)), SyntaxError);
      assert.throws(() => parse(`${text.slice(0, -1)},"\n"${text.slice(-1)}`), SyntaxError);
    }
  });
});
