import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveKey } from '../../src/domain/secret-key.ts';

test('a key is 32 bytes and the same in every process: what one has signed, another one checks after a deployment', () => {
  const key = deriveKey('an old and well-known secret key, for tests', 'cursors');
  assert.equal(key.toString('hex'), '1b09e517465835f5abc2564059a1d990f1bc5df0ec5907d2920866503f2fe0d5');
});

test('purposes and secrets do not share keys', () => {
  const keys = ['one secret key of 32 characters..', 'two secret key of 32 characters..'].flatMap((secret) =>
    (['cursors', 'download links', 'unsubscribe links', 'dashboard sessions'] as const).map((purpose) =>
      deriveKey(secret, purpose).toString('hex'),
    ),
  );
  assert.equal(new Set(keys).size, keys.length);
});
