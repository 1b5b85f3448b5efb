import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTag } from '../../src/domain/email/tag-filter.ts';

test('parses name:value with the characters that tags allow', () => {
  const longest = 'x'.repeat(256);
  for (const [name, value] of [
    ['a', 'b'],
    ['A_-9', '0'],
    ['__proto__', 'constructor'],
    [longest, longest],
  ] as const) {
    assert.deepEqual(parseTag(`${name}:${value}`), { name, value });
  }
});

test('returns undefined for any other text', () => {
  const tooLong = 'x'.repeat(257);
  for (const text of [
    ...['', 'a', ':', 'a:', ':b', 'a:b:c', 'a b:c', 'a:b ', 'a:b\n', 'ä:b', 'a:ß'],
    `${tooLong}:b`,
    `a:${tooLong}`,
  ])
    assert.equal(parseTag(text), undefined, JSON.stringify(text));
});
