import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeSeal } from '../../src/domain/seal.ts';

const seal = makeSeal(randomBytes(32));

test('what is sealed opens again, and looks like nothing', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.string(), (bytes, about) => {
      const secret = Buffer.from(bytes);
      const sealed = seal.close(secret, about);
      assert.deepEqual(seal.open(sealed, about), secret);
      if (secret.length > 3) assert.ok(!sealed.includes(secret));
    }),
  );
});

test('the same secret is never sealed alike', () => {
  const secret = randomBytes(32);
  assert.notDeepEqual(seal.close(secret, 'a'), seal.close(secret, 'a'));
});

test('it opens for nobody else, under no other key, and not when one bit was changed', () => {
  const sealed = seal.close(Buffer.from('a secret'), 'wh_1');
  assert.throws(() => seal.open(sealed, 'wh_2'));
  assert.throws(() => makeSeal(randomBytes(32)).open(sealed, 'wh_1'));
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    assert.throws(() => seal.open(changed, 'wh_1'), `bit ${bit}`);
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.throws(() => seal.open(sealed.subarray(0, length), 'wh_1'), `${length} bytes`);
  }
});
