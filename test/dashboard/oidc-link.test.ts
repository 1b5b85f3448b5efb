import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSession } from '../../src/accounts/sign-in.ts';
import { insertMembership } from '../../src/store/accounts/users.ts';
import type { Person } from '../support/oidc-issuer.ts';
import { PASSWORD, signedIn, TEST_BROWSER, textOf, type Visitor, visitor } from './visitor.ts';
import { personOf, useServiceWithIssuer } from './with-issuer.ts';

const { service, issuer, signIn, signedInBy } = await useServiceWithIssuer();
const { pool } = service;
const organization = await service.organization('Ours');
const ACCOUNT = '/dashboard/account';
const PATH = `${ACCOUNT}/oidc`;

let count = 0;

/** A person whose address the issuer does not send. */
const anonymous = (): Person => ({ sub: `anonymous ${++count}` });

/** Begins to link. @returns the URL at the issuer */
const beginLink = async (browser: Visitor): Promise<string> => {
  const { status, html } = await browser.post(`${PATH}/link`, { current: PASSWORD });
  assert.equal(status, 200, textOf(html));
  const [, url = ''] = /href="([^"]+)"[^>]*>\s*Continue to/.exec(html) ?? [];
  assert.ok(url.startsWith(`${issuer.url}/authorize?`), html);
  return url.replaceAll('&amp;', '&');
};

const linkTo = async (browser: Visitor, person: Person) =>
  browser.get(issuer.approve(await beginLink(browser), person));

const ownersOf = async ({ sub }: Person): Promise<string[]> => {
  const { rows } = await pool.query<{ user_id: string }>(`SELECT user_id FROM oidc_identities WHERE subject = $1`, [
    sub,
  ]);
  return rows.map((row) => row.user_id);
};

describe('linking an account to an identity', () => {
  it('lets a person without a verified address sign in as the user', async () => {
    const ada = await signedIn(service, organization.id);
    const person = anonymous();
    assert.ok(textOf((await ada.get(ACCOUNT)).html).includes('Link Example Login'));
    const { status, location } = await linkTo(ada, person);
    assert.deepEqual([status, location], [303, ACCOUNT]);
    const account = textOf((await ada.get(ACCOUNT)).html);
    assert.ok(account.includes('Example Login was linked to your account.'), account);
    assert.ok(account.includes(`Linked to ${issuer.url}`), account);
    const browser = await signedInBy(person);
    assert.ok(textOf((await browser.get(ACCOUNT)).html).includes(`Email ${ada.email}`));
    const { rows } = await pool.query(
      `SELECT actor_id, detail FROM audit_log WHERE action = 'account.link-oidc' AND target = $1`,
      [ada.id],
    );
    assert.deepEqual(rows, [{ actor_id: ada.id, detail: { issuer: issuer.url } }]);
  });

  it('needs the current password', async () => {
    const ada = await signedIn(service, organization.id);
    const { status, html, headers } = await ada.post(`${PATH}/link`, { current: 'a guess' });
    assert.equal(status, 422);
    assert.match(html, /id="field-current-problem"[^>]*>is not your password/);
    assert.ok(!String(headers['set-cookie']).includes('sendwright-oidc='));
  });

  it('is completed only in the session that began it (login CSRF)', async () => {
    const [mallory, ada] = [await signedIn(service, organization.id), await signedIn(service, organization.id)];
    const person = anonymous();
    const url = issuer.approve(await beginLink(mallory), person);
    const sameUser = visitor(service);
    sameUser.take(`sendwright=${await createSession(pool, mallory.id, TEST_BROWSER)}`);
    for (const browser of [ada, sameUser, visitor(service)]) {
      browser.take([browser.cookie(), mallory.flowCookie()].filter((each) => each !== '').join('; '));
      const { status, html } = await browser.get(url);
      assert.equal(status, 401);
      assert.match(textOf(html), /Your account was not linked The link was begun in another session\./);
    }
    assert.deepEqual(await ownersOf(person), []);
    // Nor does a flow that signs in link an account.
    assert.equal((await signIn(ada, person)).status, 403);
    assert.deepEqual(await ownersOf(person), []);
    assert.equal((await mallory.get(url)).status, 303);
    assert.deepEqual(await ownersOf(person), [mallory.id]);
  });

  it('refuses an identity of another user, and a second one of the same user', async () => {
    const [ada, bob] = [await signedIn(service, organization.id), await signedIn(service, organization.id)];
    const [first, second] = [anonymous(), anonymous()];
    const late = issuer.approve(await beginLink(bob), first);
    await linkTo(ada, first);
    const taken = await bob.get(late);
    assert.equal(taken.status, 409);
    assert.match(textOf(taken.html), /This identity is linked to another user\. Back to your account/);
    assert.deepEqual(await ownersOf(first), [ada.id]);
    const refused = await linkTo(ada, second);
    assert.equal(refused.status, 409);
    assert.match(textOf(refused.html), /Another identity is linked to your account; unlink it first\./);
  });

  it('needs the address of the user if an organization of the user requires OpenID Connect', async () => {
    const strict = await service.organization('Strict');
    const ada = await signedIn(service, organization.id);
    await insertMembership(pool, strict.id, ada.id, 'owner');
    await pool.query('UPDATE organizations SET requires_oidc = true WHERE id = $1', [strict.id]);
    for (const stranger of [anonymous(), personOf('mallory@example.com'), { ...anonymous(), email: ada.email }]) {
      const { status, html } = await linkTo(ada, stranger);
      assert.equal(status, 409);
      assert.ok(textOf(html).includes('Strict requires sign-in by OpenID Connect: only an identity'), textOf(html));
      assert.deepEqual(await ownersOf(stranger), []);
    }
    const own = personOf(ada.email);
    assert.equal((await linkTo(ada, own)).status, 303);
    assert.deepEqual(await ownersOf(own), [ada.id]);
  });

  it('does not outlast the takeover of an account that was never confirmed', async () => {
    const mallory = await signedIn(service, organization.id);
    await pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [mallory.id]);
    const [stranger, holder] = [anonymous(), personOf(mallory.email)];
    await linkTo(mallory, stranger);
    await signedInBy(holder);
    assert.deepEqual([await ownersOf(stranger), await ownersOf(holder)], [[], [mallory.id]]);
  });
});

describe('unlinking an account', () => {
  it('needs the current password, and ends the other sessions', async () => {
    const ada = await signedIn(service, organization.id);
    const person = anonymous();
    await linkTo(ada, person);
    const other = await signedInBy(person);
    const wrong = await ada.post(`${PATH}/unlink`, { current: 'a guess' });
    assert.equal(wrong.status, 422, 'a user without a known password keeps the identity');
    assert.deepEqual(await ownersOf(person), [ada.id]);
    await ada.change(`${PATH}/unlink`, { current: PASSWORD });
    assert.deepEqual(await ownersOf(person), []);
    assert.equal((await other.get('/dashboard')).status, 303);
    assert.equal((await signIn(visitor(service), person)).status, 403);
  });

  it('is in the audit log of each organization of the user', async () => {
    const ada = await signedIn(service, organization.id);
    const other = await service.organization('Other');
    await insertMembership(pool, other.id, ada.id, 'member');
    await linkTo(ada, anonymous());
    await ada.change(`${PATH}/unlink`, { current: PASSWORD });
    const { rows } = await pool.query(
      `SELECT org_id, actor_id FROM audit_log WHERE action = 'account.unlink-oidc' AND target = $1 ORDER BY org_id`,
      [ada.id],
    );
    assert.deepEqual(
      rows,
      [organization.id, other.id].sort().map((org_id) => ({ org_id, actor_id: ada.id })),
    );
  });

  it('is refused while an organization of the user requires OpenID Connect', async () => {
    const strict = await service.organization('Strict');
    const ada = await signedIn(service, strict.id);
    const person = anonymous();
    await linkTo(ada, person);
    await pool.query('UPDATE organizations SET requires_oidc = true WHERE id = $1', [strict.id]);
    const browser = await signedInBy(person);
    const { status, html } = await browser.post(`${PATH}/unlink`, { current: PASSWORD });
    assert.equal(status, 409);
    assert.ok(textOf(html).includes('Strict requires sign-in by OpenID Connect'), textOf(html));
    assert.deepEqual(await ownersOf(person), [ada.id]);
  });
});
