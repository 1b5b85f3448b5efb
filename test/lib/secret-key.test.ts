import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { makeDownloadLinks } from '../../src/domain/file-links.ts';
import { newId } from '../../src/lib/ids.ts';
import { deriveKey, isWeakSecretKey, secretKeysOf } from '../../src/lib/secret-key.ts';
import { makeUnsubscribeTokens } from '../../src/domain/email/unsubscribe-token.ts';
import { makeCursors } from '../../src/http/cursor.ts';
import { warnOfWeakSecretKey } from '../../src/main/process.ts';

test('a key is 32 bytes and the same in every process: what one has signed, another one checks after a deployment', () => {
  const key = deriveKey('an old and well-known secret key, for tests', 'cursors');
  assert.equal(key.export().toString('hex'), '1b09e517465835f5abc2564059a1d990f1bc5df0ec5907d2920866503f2fe0d5');
});

test('purposes and secrets do not share keys', () => {
  const keys = ['one secret key of 32 characters..', 'two secret key of 32 characters..'].flatMap((secret) =>
    (['cursors', 'download links', 'unsubscribe links', 'dashboard sessions'] as const).map((purpose) =>
      deriveKey(secret, purpose).export().toString('hex'),
    ),
  );
  assert.equal(new Set(keys).size, keys.length);
});

test('a key of repetitions or words is weak, and no key of random bytes is', () => {
  const weak = [
    'a'.repeat(64),
    'changeme'.repeat(6),
    '0123456789'.repeat(5),
    'change-me-change-me-change-me-please',
    'correct horse battery staple and some more words',
    'THIS_IS_THE_SECRET_OF_MY_COMPANY_AND_IT_IS_LONG',
  ];
  for (const key of weak) assert.ok(isWeakSecretKey(key), key);
  for (let run = 0; run < 2_000; run++) {
    const bytes = randomBytes(32);
    for (const key of [bytes.toString('base64'), bytes.toString('hex'), randomBytes(24).toString('base64url')]) {
      assert.ok(!isWeakSecretKey(key), key);
    }
  }
});

test('logs a warning about a weak key at start, and nothing about a strong one', () => {
  const warnings: unknown[] = [];
  const log = { warn: (message: unknown) => void warnings.push(message) };
  warnOfWeakSecretKey('x'.repeat(40), log);
  assert.deepEqual(warnings, [
    'SECRET_KEY is weak; replace it with 32 random bytes, for example from `openssl rand -base64 32`',
  ]);
  warnOfWeakSecretKey(randomBytes(32).toString('base64'), log);
  assert.equal(warnings.length, 1);
});

describe('after SECRET_KEY was replaced', () => {
  const [former, current] = ['the former secret key of 32 characters', 'the current secret key of 32 characters'];
  const rotated = secretKeysOf({ SECRET_KEY: current, SECRET_KEY_OLD: [former] });

  test('a download link of before works, and a new one is signed with the new key', () => {
    const query = (path: string) => {
      const { searchParams } = new URL(path, 'http://h');
      return { expires: searchParams.get('expires') ?? '', signature: searchParams.get('signature') ?? '' };
    };
    const before = query(makeDownloadLinks(former).make(['em_1', 'att_1'], 1_900_000_000));
    const links = makeDownloadLinks(rotated);
    assert.equal(links.read(['em_1', 'att_1'], before), 1_900_000_000);
    assert.equal(links.read(['em_2', 'att_1'], before), undefined);
    assert.equal(makeDownloadLinks(current).read(['em_1', 'att_1'], before), undefined);
    const after = query(links.make(['em_1', 'att_1'], 1_900_000_000));
    assert.equal(makeDownloadLinks(current).read(['em_1', 'att_1'], after), 1_900_000_000);
    assert.equal(makeDownloadLinks(former).read(['em_1', 'att_1'], after), undefined);
  });

  test('an unsubscribe link of before works, and a new one is signed with the new key', () => {
    const addressee = { orgId: newId('org', 1), emailId: newId('em', 2), position: 7 };
    const before = makeUnsubscribeTokens(former).make(addressee);
    const tokens = makeUnsubscribeTokens(rotated);
    assert.ok(tokens.verify(addressee, before));
    assert.ok(!tokens.verify({ ...addressee, position: 8 }, before));
    assert.ok(!makeUnsubscribeTokens(current).verify(addressee, before));
    assert.ok(makeUnsubscribeTokens(current).verify(addressee, tokens.make(addressee)));
  });

  test('a cursor of before leads on', () => {
    const listing = { list: 'emails', orgId: 'org_a', filters: {} };
    const position = { created_at: '2026-03-01T09:30:00.000Z', id: 'em_1' };
    const cursor = makeCursors(former).seal(listing, position);
    assert.deepEqual(makeCursors(rotated).open(listing, cursor), position);
    assert.throws(() => makeCursors(current).open(listing, cursor));
  });
});
