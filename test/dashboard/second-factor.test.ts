import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { createSession } from '../../src/accounts/sign-in.ts';
import { makeChallenges } from '../../src/accounts/sign-in-challenge.ts';
import { removeSecondFactor } from '../../src/accounts/user-accounts.ts';
import { digest } from '../../src/lib/digest.ts';
import { findSecondFactor, redeemStep } from '../../src/store/accounts/second-factors.ts';
import { SECRET_KEY } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { foundIn } from '../security/canaries.ts';
import { deliverTo, emailsTo, pathIn, startWithAccountEmails } from './account-mail.ts';
import {
  latestAudit,
  PASSWORD,
  type Person,
  signedIn,
  TEST_BROWSER,
  textOf,
  type Visitor,
  visitor,
} from './visitor.ts';

const { service, operator } = await startWithAccountEmails();
after(() => service.close());
const organization = await service.organization('Ours');
const PATH = '/dashboard/account/second-factor';
const STEP_MS = 30_000;

interface Enrolled extends Person {
  /** The code of a step after the one whose code is used up; by default one that is accepted now. */
  readonly code: (step?: number) => string;
  readonly secret: string;
  readonly recoveryCodes: readonly string[];
}

/** @returns the secret */
async function startSetUp(person: Visitor): Promise<string> {
  const { html } = await person.change(PATH);
  const [, secret = ''] = /<code>([A-Z2-7]{32})<\/code>/.exec(html) ?? [];
  assert.equal(secret.length, 32, textOf(html));
  return secret;
}

const totpOf = (secret: string): TOTP => new TOTP({ secret: Secret.fromBase32(secret) });

/** A signed-in user with a second factor. */
async function enrolled(orgId = organization.id): Promise<Enrolled> {
  const person = await signedIn(service, orgId);
  const secret = await startSetUp(person);
  const totp = totpOf(secret);
  const start = Date.now();
  const code = (step?: number) =>
    totp.generate({ timestamp: step === undefined ? Date.now() + STEP_MS : start + step * STEP_MS });
  const on = await person.post(`${PATH}/complete`, { code: code(0), current: PASSWORD });
  assert.equal(on.status, 200, textOf(on.html));
  const recoveryCodes = recoveryCodesIn(on.html);
  assert.equal(new Set(recoveryCodes).size, 10, textOf(on.html));
  return { ...person, code, secret, recoveryCodes };
}

const recoveryCodesIn = (html: string): string[] => html.match(/[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}/g) ?? [];

/** Enters the password in another browser. @returns the hidden fields of the page that asks for a code */
async function passwordOf({ email }: Person, browser: Visitor, password = PASSWORD) {
  const asked = await browser.post('/dashboard/sign-in', { email, password, next: '/dashboard/members' });
  assert.equal(asked.status, 200, textOf(asked.html));
  assert.ok(textOf(asked.html).includes('Enter your code'), textOf(asked.html));
  const [, challenge = ''] = /name="challenge" value="([^"]+)"/.exec(asked.html) ?? [];
  return { challenge, next: '/dashboard/members' };
}

const enter = (browser: Visitor, fields: object, code: string) =>
  browser.post('/dashboard/sign-in/code', { ...fields, code });

/** Changes the password to `a new password` by the link of an email. */
async function resetPassword({ email }: Person): Promise<void> {
  const former = (await emailsTo(service, email)).length;
  await visitor(service).post('/dashboard/forgot-password', { email });
  await eventually('the email', async () => (await emailsTo(service, email)).length > former);
  const path = pathIn(await deliverTo(service, operator.id, email));
  assert.equal((await visitor(service).post(path, { password: 'a new password' })).status, 200);
}

describe('a second factor', () => {
  it('is asked for after the password, and leads to the requested page', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    assert.equal(browser.cookie(), '', 'no session before the code');
    assert.equal((await browser.get('/dashboard')).status, 303);
    const wrong = await enter(browser, fields, '000000');
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /id="field-code-problem"[^>]*>is wrong or was used already/);
    const right = await enter(browser, fields, ada.code());
    assert.deepEqual([right.status, right.location], [303, '/dashboard/members']);
    assert.equal((await browser.get('/dashboard')).status, 200);
  });

  it('is turned on only with the current password, which cannot be guessed without a limit', async () => {
    const ada = await signedIn(service, organization.id);
    const code = totpOf(await startSetUp(ada)).generate();
    for (const given of [{ code }, { code, current: 'a guess' }]) {
      const refused = await ada.post(`${PATH}/complete`, given);
      assert.equal(refused.status, 422, textOf(refused.html));
      assert.match(refused.html, /id="field-current-problem"[^>]*>is not your password/);
    }
    await service.pool.query(
      `UPDATE sign_in_attempts SET attempts = 10 WHERE kind = 'password' AND email_sha256 = $1`,
      [digest(ada.email)],
    );
    const limited = await ada.post(`${PATH}/complete`, { code, current: PASSWORD });
    assert.equal(limited.status, 429);
    assert.ok(
      textOf(limited.html).includes('The current password was wrong too often; try again in '),
      textOf(limited.html),
    );
    await visitor(service).signIn(ada.email, PASSWORD);
  });

  it('is not turned on with a secret that was replaced while its code was checked', async () => {
    const person = await signedIn(service, organization.id);
    await startSetUp(person);
    const checked = await findSecondFactor(service.pool, person.id);
    await startSetUp(person);
    assert.ok(checked);
    assert.equal(await redeemStep(service.pool, person.id, checked, 1, true), false);
    assert.equal((await findSecondFactor(service.pool, person.id))?.is_confirmed, false);
  });

  it('is turned on without a password in a session by OpenID Connect', async () => {
    const { id } = await signedIn(service, organization.id);
    const browser = visitor(service);
    browser.take(`sendwright=${await createSession(service.pool, id, { ...TEST_BROWSER, byOidc: true })}`);
    const code = totpOf(await startSetUp(browser)).generate();
    assert.ok(!(await browser.get(PATH)).html.includes('type="password"'));
    assert.equal((await browser.post(`${PATH}/complete`, { code })).status, 200);
  });

  it('accepts no code twice, nor an earlier one or one of another time', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    for (const code of [ada.code(0), ada.code(-3), ada.code(20)]) {
      assert.equal((await enter(browser, fields, code)).status, 422, 'used up at the set-up, past, or to come');
    }
    const code = ada.code();
    const [first, second] = await Promise.all([enter(browser, fields, code), enter(visitor(service), fields, code)]);
    assert.deepEqual([first.status, second.status].sort(), [303, 422]);
  });

  it('accepts each recovery code once, in any case and spacing', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    const code = ada.recoveryCodes[0]?.toLowerCase().replaceAll('-', ' ') ?? '';
    assert.equal((await enter(browser, fields, code)).status, 303);
    assert.equal((await enter(visitor(service), fields, code)).status, 422);
    assert.ok(textOf((await ada.get(PATH)).html).includes('Unused recovery codes: 9.'));
  });

  it('cannot be guessed without a limit, also with a fresh password check', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    const tries = await Promise.all(Array.from({ length: 12 }, () => enter(browser, fields, '000000')));
    assert.deepEqual(tries.map(({ status }) => status).sort(), [...Array<number>(10).fill(422), 429, 429]);
    const again = await enter(browser, await passwordOf(ada, browser), ada.code());
    assert.equal(again.status, 429);
  });

  it('records a wrong code in the audit log: someone knows the password', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    await enter(browser, await passwordOf(ada, browser), '000000');
    assert.deepEqual(await latestAudit(service, 'account.sign-in-failed'), {
      target: ada.id,
      detail: { address: '127.0.0.1', known_browser: false, second_factor: true },
    });
  });

  it('needs a challenge of the same user that is neither forged, old, nor of an earlier password', async () => {
    const [ada, bob] = [await enrolled(), await enrolled()];
    const browser = visitor(service);
    const { challenge } = await passwordOf(ada, browser);
    const [, expiresAt, signature] = challenge.split('.');
    const { rows } = await service.pool.query<{ password: string }>('SELECT password FROM users WHERE id = $1', [
      ada.id,
    ]);
    const issuedAgo = (ms: number) =>
      makeChallenges(SECRET_KEY).issue({ id: ada.id, password: rows[0]?.password ?? '' }, Date.now() - ms);
    for (const [invalid, named] of [
      [challenge.replace(ada.id, bob.id), bob],
      [[ada.id, Number(expiresAt) + 1, signature].join('.'), ada],
      [issuedAgo(600_000), ada],
      [challenge.slice(0, -1), ada],
      ['x', ada],
    ] as const) {
      const answer = await enter(browser, { challenge: invalid }, named.code());
      assert.deepEqual([answer.status, answer.location], [303, '/dashboard/sign-in'], invalid);
      assert.equal(browser.cookie(), '', invalid);
    }
    const valid = await enter(visitor(service), { challenge: issuedAgo(540_000) }, ada.code());
    assert.deepEqual([valid.status, valid.location], [303, '/dashboard'], 'issued 9 minutes ago');
    await ada.change('/dashboard/account/password', { current: PASSWORD, password: 'a new password' });
    const late = await enter(browser, { challenge }, ada.code());
    assert.deepEqual([late.status, late.location], [303, '/dashboard/sign-in']);
  });

  it('is turned off by a code only, and then no longer asked for', async () => {
    const ada = await enrolled();
    assert.equal((await ada.post(`${PATH}/off`, { code: '000000' })).status, 422);
    assert.equal((await ada.post(`${PATH}/recovery-codes`, { code: '000000' })).status, 422);
    // A new set-up does not replace a completed one.
    await ada.change(PATH);
    const renewed = await ada.post(`${PATH}/recovery-codes`, { code: ada.code() });
    assert.equal(renewed.status, 200, textOf(renewed.html));
    assert.ok(!renewed.html.includes(ada.recoveryCodes[1] ?? ''), 'they are new');
    assert.equal((await ada.post(`${PATH}/off`, { code: ada.recoveryCodes[1] ?? '' })).status, 422, 'old ones ended');
    const [code = ''] = recoveryCodesIn(renewed.html);
    const off = await ada.change(`${PATH}/off`, { code });
    assert.ok(textOf(off.html).includes('Two-factor authentication is off.'), textOf(off.html));
    await visitor(service).signIn(ada.email, PASSWORD);
  });

  it('stays after a password reset by email, which does not replace it', async () => {
    const ada = await enrolled();
    await resetPassword(ada);
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser, 'a new password');
    assert.equal((await enter(browser, fields, ada.code())).status, 303);
  });

  it('keeps its limit, and emailed links keep theirs, after a password reset by email', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    await Promise.all(Array.from({ length: 10 }, () => enter(browser, fields, '000000')));
    await resetPassword(ada);
    const limited = await enter(browser, await passwordOf(ada, browser, 'a new password'), ada.code());
    assert.equal(limited.status, 429);
    const { rows } = await service.pool.query<{ kind: string }>(
      `SELECT kind FROM sign_in_attempts WHERE email_sha256 = $1 ORDER BY kind`,
      [digest(ada.email)],
    );
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['code', 'code_day', 'code_renewal', 'notice', 'reset_email', 'reset_pair', 'reset_pair_day'],
    );
  });

  it('accepts no code of the app after 30 wrong ones in a day, but a recovery code, or a code after a password reset', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    assert.equal((await enter(browser, fields, '000000')).status, 422);
    await service.pool.query(
      `UPDATE sign_in_attempts SET attempts = 30 WHERE kind = 'code_day' AND email_sha256 = $1`,
      [digest(ada.email)],
    );
    const refused = await enter(browser, fields, ada.code());
    assert.equal(refused.status, 429);
    assert.ok(textOf(refused.html).includes('use a recovery code, reset your password'), textOf(refused.html));
    assert.equal((await enter(browser, fields, ada.recoveryCodes[0] ?? '')).status, 303);
    assert.equal((await enter(visitor(service), fields, ada.code())).status, 429, 'a success does not clear it');
    await resetPassword(ada);
    const later = visitor(service);
    assert.equal((await enter(later, await passwordOf(ada, later, 'a new password'), ada.code())).status, 303);
  });

  it('reports to the user by one email when the fifth code was wrong', async () => {
    const ada = await enrolled();
    const browser = visitor(service);
    const fields = await passwordOf(ada, browser);
    for (let i = 0; i < 4; i++) await enter(browser, fields, '000000');
    assert.deepEqual(await emailsTo(service, ada.email), []);
    for (let i = 0; i < 3; i++) await enter(browser, fields, '000000');
    assert.equal((await emailsTo(service, ada.email)).length, 1);
    const email = await deliverTo(service, operator.id, ada.email);
    assert.equal(email.subject, 'Wrong codes for your Sendwright account');
    assert.equal(pathIn(email), '/dashboard/account');
  });

  it('ends the other sessions of its user when it is turned on', async () => {
    const person = await signedIn(service, organization.id);
    const elsewhere = visitor(service);
    await elsewhere.signIn(person.email, PASSWORD);
    const code = totpOf(await startSetUp(person)).generate();
    assert.equal((await person.post(`${PATH}/complete`, { code, current: PASSWORD })).status, 200);
    assert.equal((await elsewhere.get('/dashboard')).status, 303);
    assert.equal((await person.get('/dashboard')).status, 200);
  });

  it('of an account that was never confirmed ends when the holder of the address resets its password', async () => {
    const ada = await enrolled();
    await service.pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [ada.id]);
    await resetPassword(ada);
    await visitor(service).signIn(ada.email, 'a new password');
  });

  it('is removed by the operator for a user who has lost it', async () => {
    const ada = await enrolled();
    const { email, id } = ada;
    assert.deepEqual(await removeSecondFactor(service.pool, { email }), { id, email, removed: true });
    await visitor(service).signIn(email, PASSWORD);
    const { rows } = await service.pool.query(
      `SELECT actor_kind, actor_id, action FROM audit_log WHERE target = $1 AND action <> 'account.sign-in' ORDER BY at, id`,
      [id],
    );
    assert.deepEqual(rows, [
      { actor_kind: 'user', actor_id: id, action: 'account.second-factor-on' },
      { actor_kind: 'system', actor_id: 'admin', action: 'members.reset-second-factor' },
    ]);
  });

  it('is stored sealed, its recovery codes as digests, and neither is logged', async () => {
    const ada = await enrolled();
    const { rows } = await service.pool.query<{ row: string }>(
      `SELECT to_jsonb(t)::text AS row FROM second_factors AS t UNION ALL SELECT to_jsonb(t)::text FROM recovery_codes AS t`,
    );
    const stored = rows.map(({ row }) => row).join('\n') + service.log.join('\n');
    const hex = Buffer.from(Secret.fromBase32(ada.secret).bytes).toString('hex');
    const [code = ''] = ada.recoveryCodes;
    assert.deepEqual(foundIn(stored, { base32: ada.secret, hex, code, plain: code.replaceAll('-', '') }), []);
  });
});

describe('an organization that requires a second factor', () => {
  it('opens only for members who have one, and keeps their other organizations open', async () => {
    const [strict, other] = [await service.organization('Strict'), await service.organization('Other')];
    const ada = await enrolled(strict.id);
    const bob = await signedIn(service, strict.id, 'member');
    await service.pool.query(`INSERT INTO memberships (org_id, user_id, role) VALUES ($1, $2, 'viewer')`, [
      other.id,
      bob.id,
    ]);
    assert.equal((await bob.get('/dashboard/members')).status, 200);
    assert.equal((await bob.post('/dashboard/members/security', { second_factor: 'on' })).status, 403);
    await ada.change('/dashboard/members/security', { second_factor: 'on' });

    for (const path of ['/dashboard', '/dashboard/emails', '/dashboard/account']) {
      const { status, location } = await bob.get(path);
      assert.deepEqual([status, location], [303, PATH], path);
    }
    const changed = await bob.post('/dashboard/suppressions/add', { emails: 'x@example.com' });
    assert.deepEqual([changed.status, changed.location], [303, PATH]);
    assert.ok(textOf((await bob.get(PATH)).html).includes('Strict requires two-factor authentication'));
    assert.equal((await ada.get('/dashboard')).status, 200);
    assert.equal((await bob.change('/dashboard/organization', { organization: other.id })).status, 200);
    await bob.post('/dashboard/organization', { organization: strict.id });

    const code = totpOf(await startSetUp(bob)).generate();
    assert.equal((await bob.post(`${PATH}/complete`, { code, current: PASSWORD })).status, 200);
    assert.equal((await bob.get('/dashboard')).status, 200);
    await ada.change('/dashboard/members/security');
    const carol = await signedIn(service, strict.id);
    assert.equal((await carol.get('/dashboard')).status, 200);
  });
});
