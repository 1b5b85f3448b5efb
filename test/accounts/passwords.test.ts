import assert from 'node:assert/strict';
import { randomBytes, scryptSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { hashPassword, isPassword } from '../../src/accounts/passwords.ts';
import { ServiceError } from '../../src/domain/errors.ts';

const PASSWORD = 'correct horse';

/** The hash of `PASSWORD` at a cost that a test can pay many times. */
function cheapHash(): string {
  const [log2N, r, p] = [10, 8, 1];
  const salt = randomBytes(16);
  const hash = scryptSync(PASSWORD, salt, 32, { N: 2 ** log2N, r, p });
  return ['scrypt', log2N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

describe('checks of passwords', () => {
  it('are refused beyond 2 that run and 50 that wait, and those with priority are served first', async () => {
    const hashed = cheapHash();
    const finished: string[] = [];
    const refused: unknown[] = [];
    const check = (name: string, isPriority: boolean) =>
      isPassword(PASSWORD, hashed, 'one network', { isPriority }).then(
        (isRight) => finished.push(`${name} ${isRight}`),
        (error: unknown) => refused.push(error),
      );
    const checks = Array.from({ length: 60 }, () => check('other', false));
    await Promise.all([...checks, check('priority', true)]);
    assert.deepEqual([finished.length, refused.length], [53, 8]);
    for (const error of refused) assert.ok(error instanceof ServiceError && error.code === 'unavailable');
    const position = finished.indexOf('priority true');
    assert.ok(position >= 0 && position < 20, `position ${position}`);
  });
});

describe('a password', () => {
  it('is accepted in every Unicode form of the same text, and no other is', async () => {
    const hashed = await hashPassword('ﬁancée Ångström'.normalize('NFC'));
    for (const [entered, expected] of [
      ['ﬁancée Ångström'.normalize('NFC'), true],
      ['ﬁancée Ångström'.normalize('NFD'), true],
      ['fiancée Ångström', true],
      ['fiancee Angstrom', false],
    ] as const) {
      assert.equal(await isPassword(entered, hashed, ''), expected, entered);
    }
  });
});
