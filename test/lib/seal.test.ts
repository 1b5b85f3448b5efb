import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeSeal } from '../../src/lib/seal.ts';

const newKey = () => createSecretKey(randomBytes(32));
const seal = makeSeal([newKey()]);
/** `a secret of before` about `wh_1`, sealed with 32 bytes of 7 by the version before key ids. */
const FORM_1 = '011157b070e273ccff35576539fb6b9fadc015c57648a7afe7d9e15c30b369b3053c1d9399d26520612271bee85516';

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

test('no nonce occurs twice', () => {
  const nonceOf = (sealed: Buffer) => sealed.subarray(seal.prefix.length).toString('hex', 0, 12);
  const nonces = Array.from({ length: 2_000 }, () => nonceOf(seal.close(Buffer.from('a secret'), 'a')));
  assert.equal(new Set(nonces).size, nonces.length);
});

test('is not opened for another context, with another key, or with one bit changed', () => {
  const sealed = seal.close(Buffer.from('a secret'), 'wh_1');
  assert.throws(() => seal.open(sealed, 'wh_2'));
  assert.throws(() => makeSeal([newKey()]).open(sealed, 'wh_1'));
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    assert.throws(() => seal.open(changed, 'wh_1'), `bit ${bit}`);
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.throws(() => seal.open(sealed.subarray(0, length), 'wh_1'), `${length} bytes`);
  }
});

test('opens with an old key what that key sealed, and seals with the primary key', () => {
  const [former, current] = [newKey(), newKey()];
  const sealed = makeSeal([former]).close(Buffer.from('a secret'), 'wh_1');
  const rotated = makeSeal([current, former]);
  assert.equal(rotated.open(sealed, 'wh_1').toString(), 'a secret');
  const resealed = rotated.close(Buffer.from('a secret'), 'wh_1');
  assert.equal(makeSeal([current]).open(resealed, 'wh_1').toString(), 'a secret');
  assert.throws(() => makeSeal([former]).open(resealed, 'wh_1'), /a key that is not known/);
  assert.deepEqual(resealed.subarray(0, rotated.prefix.length), rotated.prefix);
  assert.notDeepEqual(sealed.subarray(0, rotated.prefix.length), rotated.prefix, 'the key id differs');
});

test('opens values that were sealed before they had a key id, with the primary key and with an old one', () => {
  const key = createSecretKey(Buffer.alloc(32, 7));
  const sealed = Buffer.from(FORM_1, 'hex');
  assert.equal(makeSeal([key]).open(sealed, 'wh_1').toString(), 'a secret of before');
  assert.equal(makeSeal([newKey(), key]).open(sealed, 'wh_1').toString(), 'a secret of before');
  assert.throws(() => makeSeal([newKey()]).open(sealed, 'wh_1'));
});
