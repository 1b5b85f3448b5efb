import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dictionary } from '@zxcvbn-ts/language-common';
import { acceptInvitation, invite } from '../../src/accounts/invitations.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { requireGoodPassword } from '../../src/accounts/password-rules.ts';
import { createReset, resetPassword } from '../../src/accounts/password-reset.ts';
import { generatePassword } from '../../src/accounts/passwords.ts';
import { resetUser } from '../../src/accounts/user-accounts.ts';
import { changePassword, createUser } from '../../src/accounts/users.ts';
import { ServiceError } from '../../src/domain/errors.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
const { id: orgId } = await createOrganization(pool, 'Blue Whale, Inc.');
const ADA = { email: 'ada.lovelace@engine.example', name: 'Augusta King', orgId };
const COMMON = 'password: must not be a common password, with or without digits at its end';
const OWN =
  'password: must not be your address, your name or the name of your organization, with or without digits around it';

async function problem(password: string, owner: Parameters<typeof requireGoodPassword>[2] = ADA) {
  try {
    await requireGoodPassword(pool, password, owner);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.code === 'validation_error' && error.param === 'password');
    return error.message;
  }
}

describe('a new password', () => {
  it('is refused if it is one of the 10,000 most common ones of at least 8 characters', async () => {
    const common = dictionary['passwords-common'].map(String).filter((word) => word.length >= 8);
    assert.ok(common.length >= 10_000, String(common.length));
    for (let i = 0; i < 10_000; i += 97) assert.equal(await problem(common[i] ?? ''), COMMON, common[i]);
  });

  for (const password of [
    'password',
    '12345678',
    'Qwertyuiop',
    'PASSWORD123',
    'ｐａｓｓｗｏｒｄ',
    ' password ',
    'pass-word!',
    'Password2026!',
    'welcome1234',
    'p@ssw0rd',
  ]) {
    it(`is refused as common: ${password}`, async () => assert.equal(await problem(password), COMMON));
  }

  for (const password of [
    'ada.lovelace@engine.example',
    'Ada.Lovelace',
    'adalovelace1815',
    'engine.example',
    'engine 19430716',
    'blue whale inc',
    'BlueWhaleInc2026',
    'augusta-king',
    'Sendwright1',
  ]) {
    it(`is refused as a name of its user: ${password}`, async () => assert.equal(await problem(password), OWN));
  }

  for (const password of ['seven c', 'x'.repeat(201)]) {
    it(`is refused for its ${password.length} characters`, async () => {
      assert.equal(await problem(password), 'password: must be 8 to 200 characters');
    });
  }

  for (const password of [
    generatePassword(),
    'correct horse battery',
    'ada.lovelace rides a whale',
    '73920584619',
    'Übergrößenträger-Öl',
    '漢字仮名交じり文です',
    '}{!>|~^%$#',
  ]) {
    it(`is accepted: ${password}`, async () => assert.equal(await problem(password), undefined));
  }

  it('is compared with the names of the organizations that its user is in', async () => {
    const { id } = await createOrganization(pool, 'Night Heron');
    await createUser(pool, id, { email: 'grace@example.net' });
    assert.equal(await problem('nightheron', { email: 'grace@example.net', name: '' }), OWN);
    assert.equal(await problem('nightheron'), undefined);
  });
});

describe('the rules apply', () => {
  const refused = { code: 'validation_error', param: 'password', message: COMMON };
  const password = 'iloveyou1';

  it("to the operator's users and resets", async () => {
    await assert.rejects(createUser(pool, orgId, { email: 'a@example.net', password }), refused);
    const { id } = await createUser(pool, orgId, { email: 'b@example.net' });
    await assert.rejects(resetUser(pool, { id }, password), refused);
  });

  it('to invitations, changes and resets in the dashboard', async () => {
    const { token } = await invite(pool, orgId, 'c@example.net', 'viewer');
    await assert.rejects(acceptInvitation(pool, token, { name: '', password }), refused);
    const made = await createUser(pool, orgId, { email: 'd@example.net' });
    const user = { id: made.id, email: made.email, name: '' };
    await assert.rejects(changePassword(pool, user, { current: made.password ?? '', password }, ''), refused);
    await assert.rejects(resetPassword(pool, (await createReset(pool, made.email)) ?? '', password), refused);
  });
});
