import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ServiceError } from '../../src/domain/errors.ts';
import { fingerprint } from '../../src/http/plugins/fingerprint.ts';

const of = async (body: unknown) => (await fingerprint('POST', '/v1/emails', body)).toString('hex');

/** The same value with the keys of every object in reverse order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

/** The same text for equal values; -0 equals 0. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

const json = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe('the fingerprint of a request', () => {
  it('does not depend on the order of keys', async () => {
    await fc.assert(fc.asyncProperty(json, async (body) => assert.equal(await of(body), await of(reversed(body)))));
  });

  it('differs where values differ', async () => {
    await fc.assert(
      fc.asyncProperty(json, json, async (one, other) => {
        fc.pre(canonical(one) !== canonical(other));
        assert.notEqual(await of(one), await of(other));
      }),
    );
    const values: unknown[] = [
      ...[{}, [], null, true, false, 0, 1, '', '0', 'null', 'true', 'a', [[]], [{}], ['a'], { a: 1 }, { a: '1' }],
      ...[{ a: [1] }, { a: ['1'] }, { a: [] }, { a: {} }, { a: null }, { a: ['a', 'b'] }, { a: ['ab'] }],
      // Values whose concatenated parts are equal.
      ...[{ a: ['a'], b: [] }, { a: 'b"c"d' }, { a: 'b', c: 'd' }, { a: ['"1:b'] }, { a: ['1:b'] }],
      ...[{ a: 'x', b: 'y' }, { a: 'x"1:b"1:y' }, { ab: 'c' }, { a: 'bc' }],
    ];
    const prints = await Promise.all(values.map(of));
    assert.equal(new Set(prints).size, values.length);
  });

  it('is refused for a body that is nested 100,000 levels deep', async () => {
    let body: unknown = 'x';
    for (let depth = 0; depth < 100_000; depth++) body = [body];
    await assert.rejects(
      of({ tags: body }),
      (error: unknown) => error instanceof ServiceError && error.code === 'validation_error',
    );
  });
});
