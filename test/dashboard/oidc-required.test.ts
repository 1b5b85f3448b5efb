import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { invite } from '../../src/accounts/invitations.ts';
import { OIDC_SIGN_IN } from '../../src/dashboard/oidc-flow.ts';
import { insertMembership } from '../../src/store/accounts/users.ts';
import { useService } from '../http/service.ts';
import { printed } from '../main/command-line.ts';
import { latestAudit, PASSWORD, signedIn, textOf, type Visitor, visitor } from './visitor.ts';
import { personOf, useServiceWithIssuer } from './with-issuer.ts';

const { service, issuer, signedInBy } = await useServiceWithIssuer();
const { pool } = service;
const SECURITY = '/dashboard/members/security';
const REQUIRED = '/dashboard/sign-in/required';

/** An organization that requires sign-in by OpenID Connect, with an owner who has done so. */
async function strictOrganization(name: string) {
  const { id, key, call } = await service.organization(name);
  const ada = await signedIn(service, id);
  const owner = await signedInBy(personOf(ada.email));
  const page = await owner.change(SECURITY, { oidc: 'on' });
  assert.ok(textOf(page.html).includes('The sign-in requirements were saved.'), textOf(page.html));
  return { id, key, call, owner, ada };
}

const byPassword = (browser: Visitor, email: string) =>
  browser.post('/dashboard/sign-in', { email, password: PASSWORD, next: '/dashboard/emails' });

describe('an organization that requires OpenID Connect', () => {
  it('is closed immediately to members who signed in by password, and open to others', async () => {
    const { id, call, owner, ada } = await strictOrganization('Strict');
    const bob = await signedIn(service, id, 'member');
    for (const path of ['/dashboard', '/dashboard/emails', '/dashboard/account', '/dashboard/account/second-factor']) {
      for (const person of [ada, bob]) {
        const { status, location } = await person.get(path);
        assert.deepEqual([status, location], [303, REQUIRED], path);
      }
      assert.equal((await owner.get(path)).status, 200, path);
    }
    const part = await bob.get('/dashboard/emails', { 'hx-request': 'true' });
    assert.deepEqual([part.status, part.headers['hx-redirect']], [401, REQUIRED]);
    const changed = await bob.post('/dashboard/suppressions/add', { emails: 'x@example.com' });
    assert.deepEqual([changed.status, changed.location], [303, REQUIRED]);
    const { html } = await bob.get(REQUIRED);
    assert.match(textOf(html), /Strict requires its members to sign in with Example Login ?\./);
    assert.ok(html.includes(OIDC_SIGN_IN));
    assert.equal((await owner.get(REQUIRED)).location, '/dashboard');
    assert.equal((await visitor(service).get(REQUIRED)).location, '/dashboard');
    assert.equal((await call('GET', '/v1/emails')).status, 200, 'API keys are not affected');
    const entry = await latestAudit(service, 'organizations.security');
    assert.deepEqual(entry, { target: id, detail: { requires_second_factor: false, requires_oidc: true } });
  });

  it('sends members to the identity provider again after 12 hours, from where they come back to the page', async () => {
    const { id, owner } = await strictOrganization('Daily');
    const age = (hours: number) =>
      pool.query(`UPDATE sessions SET created_at = now() - make_interval(hours => $1) WHERE by_oidc AND org_id = $2`, [
        hours,
        id,
      ]);
    await age(11);
    assert.equal((await owner.get('/dashboard/emails?status=sent')).status, 200);
    await age(13);
    const { status, location = '' } = await owner.get('/dashboard/emails?status=sent');
    assert.deepEqual([status, location], [303, `${OIDC_SIGN_IN}?next=%2Fdashboard%2Femails%3Fstatus%3Dsent`]);
    const changed = await owner.post('/dashboard/suppressions/add', { emails: 'x@example.com' });
    assert.deepEqual([changed.status, changed.location?.split('?')[0]], [303, OIDC_SIGN_IN]);
    const part = await owner.get('/dashboard/emails', { 'hx-request': 'true' });
    assert.equal(part.status, 401);
    await pool.query('UPDATE organizations SET requires_oidc = false WHERE id = $1', [id]);
    assert.equal((await owner.get('/dashboard/emails')).status, 200, 'only such organizations ask again');
  });

  it('refuses a right password and names the other way, and reports no more about a wrong one', async () => {
    const { id } = await strictOrganization('Refusing');
    const bob = await signedIn(service, id, 'member');
    const browser = visitor(service);
    const { status, html } = await byPassword(browser, bob.email);
    assert.equal(status, 403);
    assert.match(textOf(html), /Your organization requires its members to sign in with Example Login ?\./);
    assert.ok(html.includes(`${OIDC_SIGN_IN}?next=%2Fdashboard%2Femails`));
    assert.equal(browser.cookie(), '');
    const wrong = await browser.post('/dashboard/sign-in', { email: bob.email, password: 'a wrong password' });
    assert.equal(wrong.status, 401);
    assert.ok(!textOf(wrong.html).includes('Your organization'), textOf(wrong.html));
    const counted = await pool.query(
      `SELECT attempts FROM sign_in_attempts WHERE kind = 'pair' AND email_sha256 = sha256(convert_to($1, 'UTF8'))`,
      [bob.email],
    );
    assert.deepEqual(counted.rows, [{ attempts: 2 }], 'both count, since both are in the audit log');
    await signedInBy(personOf(bob.email));
    const { rows } = await pool.query(
      `SELECT detail->>'reason' AS reason FROM audit_log
       WHERE target = $1 AND action = 'account.sign-in-failed' ORDER BY at, id`,
      [bob.id],
    );
    assert.deepEqual(rows, [{ reason: 'OpenID Connect is required' }, { reason: null }]);
  });

  it('leaves other organizations of its members open by password', async () => {
    const [strict, other] = [await strictOrganization('Strict one'), await service.organization('Other one')];
    const bob = await signedIn(service, strict.id, 'member');
    await insertMembership(pool, other.id, bob.id, 'viewer');
    const browser = visitor(service);
    assert.equal((await byPassword(browser, bob.email)).status, 303);
    await browser.post('/dashboard/organization', { organization: strict.id });
    assert.equal((await browser.get('/dashboard')).location, REQUIRED);
    const { html } = await browser.get(REQUIRED);
    assert.match(textOf(html), /Open Other one Sign out$/);
    assert.ok(
      textOf((await browser.change('/dashboard/organization', { organization: other.id })).html).includes('Other'),
    );
  });

  it('leaves the second factor to the issuer', async () => {
    const { id, owner } = await strictOrganization('Both');
    await owner.change(SECURITY, { oidc: 'on', second_factor: 'on' });
    assert.equal((await owner.get('/dashboard/emails')).status, 200);
    const { html } = await owner.get('/dashboard/account/second-factor');
    assert.ok(!textOf(html).includes('requires two-factor'), textOf(html));
    const bob = await signedIn(service, id, 'member');
    assert.equal((await bob.get('/dashboard/emails')).location, REQUIRED);
  });

  it('takes no new member with a password', async () => {
    const { id } = await strictOrganization('Closed');
    const { token } = await invite(pool, id, 'new@example.com', 'member');
    const path = `/dashboard/invitations/${token}`;
    const browser = visitor(service);
    const { html } = await browser.get(path);
    assert.ok(html.includes(`${OIDC_SIGN_IN}?next=${encodeURIComponent(path)}`) && !html.includes('type="password"'));
    assert.equal((await browser.post(path, { name: 'New', password: PASSWORD })).status, 409);
    const invited = await signedInBy(personOf('new@example.com'));
    assert.ok(textOf((await invited.change(path)).html).includes('Welcome to Closed.'));
  });

  it('stays closed to passwords while the issuer is down', async () => {
    const { id } = await strictOrganization('Down');
    const bob = await signedIn(service, id, 'member');
    issuer.setDown(true);
    assert.equal((await byPassword(visitor(service), bob.email)).status, 403);
    issuer.setDown(false);
  });
});

describe('the requirement', () => {
  it('can be set only by an owner who has signed in that way', async () => {
    const organization = await service.organization('Careful');
    const ada = await signedIn(service, organization.id);
    const { html } = await ada.get('/dashboard/members');
    assert.match(
      textOf(html),
      /To require sign-in with Example Login of all members, sign in with it yourself first\./,
    );
    assert.ok(!html.includes('name="oidc"'));
    const refused = await ada.post(SECURITY, { oidc: 'on' });
    assert.equal(refused.status, 422);
    assert.match(textOf(refused.html), /can only be required by an owner who has signed in that way/);
    assert.equal((await ada.get('/dashboard/members')).status, 200);
    const member = await signedIn(service, organization.id, 'member');
    const browser = await signedInBy(personOf(member.email));
    assert.equal((await browser.post(SECURITY, { oidc: 'on' })).status, 403);
  });

  it('is lifted by an owner, and passwords work again', async () => {
    const { owner, ada } = await strictOrganization('Lenient');
    assert.match((await owner.get('/dashboard/members')).html, /name="oidc" value="on" checked/);
    await owner.change(SECURITY);
    assert.equal((await byPassword(visitor(service), ada.email)).status, 303);
    assert.equal((await ada.get('/dashboard')).status, 200);
  });

  it('is lifted by the operator when the issuer locks everybody out', async () => {
    const { id, ada } = await strictOrganization('Locked out');
    const env = { DATABASE_URL: service.databaseUrl };
    const result = await printed(['organization', 'allow-passwords', '--organization', id], env);
    assert.deepEqual(result, { id, requires_oidc: false });
    assert.equal((await byPassword(visitor(service), ada.email)).status, 303);
    const { rows } = await pool.query(
      `SELECT actor_kind, actor_id, target FROM audit_log WHERE org_id = $1 AND action = 'organizations.allow-passwords'`,
      [id],
    );
    assert.deepEqual(rows, [{ actor_kind: 'system', actor_id: 'admin', target: id }]);
  });

  it('is not offered without an issuer, and the refusal by a requirement that is left names the operator', async () => {
    const other = await useService();
    const { id } = await other.organization('Left');
    const ada = await signedIn(other, id);
    assert.ok(!textOf((await ada.get('/dashboard/members')).html).includes('OpenID Connect'));
    await other.pool.query('UPDATE organizations SET requires_oidc = true');
    const { status, html } = await byPassword(visitor(other), ada.email);
    assert.equal(status, 403);
    assert.match(textOf(html), /This service has no identity provider at present\. Ask its operator\./);
  });
});
