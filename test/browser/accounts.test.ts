import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createUser } from '../../src/accounts/users.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { OIDC_CALLBACK } from '../../src/dashboard/oidc-flow.ts';
import { eventually } from '../support/eventually.ts';
import { CLIENT, type Issuer, startIssuer } from '../support/oidc-issuer.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { violations } from './axe.ts';
import { DESKTOP, enterPassword, openBrowser, openTab, PHONE } from './browser.ts';
import { linkIn, sendMail } from './content.ts';

/** Scenarios of accounts in the dashboard of `npm start`, all of them also without scripts: every page must work without them. */
test('accounts in a browser', async (t) => {
  const issuer = await startIssuer();
  t.after(() => issuer.close());
  const oidc = {
    OIDC_ISSUER: issuer.url,
    OIDC_CLIENT_ID: CLIENT.id,
    OIDC_CLIENT_SECRET: CLIENT.secret,
    OIDC_NAME: 'Example Login',
  };
  const dev = await (await startSendwright(t, await emptyHome(), oidc)).dev();
  issuer.register(dev.base_url + OIDC_CALLBACK);
  const browser = await openBrowser(t);
  const pool = makePool(dev.database_url, 'test', 2, () => undefined);
  t.after(() => pool.end());
  for (const [name, run] of Object.entries(SCENARIOS))
    await t.test(name, (inner) => run(inner, { dev, browser, pool, issuer }));
});

interface Fixture {
  readonly dev: DevFile;
  readonly browser: Browser;
  readonly pool: Pool;
  readonly issuer: Issuer;
}

const PASSWORD = 'a long password';
const WITHOUT_SCRIPTS = { javaScriptEnabled: false };

const SCENARIOS: Readonly<Record<string, (t: TestContext, fixture: Fixture) => Promise<void>>> = {
  async 'a user resets a forgotten password by the link of an email'(t, { dev, browser, pool }) {
    const email = 'forgetful@example.com';
    await createUser(pool, dev.organization_id, { email });
    const page = await openTab(t, browser, WITHOUT_SCRIPTS);
    await page.goto(dev.dashboard_url);
    await page.getByRole('link', { name: 'Forgot your password?' }).click();
    await page.getByLabel('Email').fill(email);
    await page.getByRole('button', { name: 'Email me a link' }).click();
    await page.getByRole('heading', { level: 1, name: 'Check your email' }).waitFor();

    await page.goto(await eventually('the email arrives', () => linkIn(dev, email)));
    await page.getByLabel('New password').fill('a new password');
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('heading', { level: 1, name: 'Password changed' }).waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await enterPassword(page, email, 'a new password');
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
  },

  async 'a user sets up two-factor authentication, signs in by a code, and turns it off by a recovery code'(
    t,
    fixture,
  ) {
    await useSecondFactor(t, fixture, 'careful@example.com', WITHOUT_SCRIPTS, async () => undefined);
  },

  async 'the pages of two-factor authentication are accessible and fit the window'(t, fixture) {
    await useSecondFactor(t, fixture, 'mobile@example.com', { viewport: PHONE }, checkPage);
  },

  async 'an owner signs in by OpenID Connect and requires it of all members'(t, fixture) {
    await useOidc(t, fixture, 'federated@example.com', WITHOUT_SCRIPTS, async () => undefined);
  },

  async 'the pages of OpenID Connect are accessible and fit the window'(t, fixture) {
    await useOidc(t, fixture, 'roaming@example.com', { viewport: PHONE }, checkPage);
  },

  async 'a user links an identity without a verified address on the account page'(t, fixture) {
    await linkIdentity(t, fixture, 'unverified@example.com', WITHOUT_SCRIPTS, async () => undefined);
  },

  async 'a page shows a notice instead of the data of an organization that another tab has selected'(
    t,
    { dev, browser, pool },
  ) {
    const email = 'consultant@example.com';
    const { id } = await createOrganization(pool, 'Client');
    await createUser(pool, id, { email, password: PASSWORD });
    await sendMail(dev, { subject: 'Of the developers' });
    const page = await openTab(t, browser);
    await page.goto(`${dev.dashboard_url}/emails`);
    await enterPassword(page, email, PASSWORD);
    const client = page.locator('header', { hasText: 'Client' });
    await client.waitFor();
    await page.getByText('No emails yet').waitFor();

    await pool.query(
      `INSERT INTO memberships (org_id, user_id, role) SELECT $1, id, 'viewer' FROM users WHERE email = $2`,
      [dev.organization_id, email],
    );
    const other = await page.context().newPage();
    await other.goto(dev.dashboard_url);
    await other.locator('details.organization').click();
    await other.locator('details.organization button').click();
    await other.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.bringToFront();
    await page.getByRole('status').filter({ hasText: 'this page is no longer refreshed' }).waitFor();
    assert.ok(await client.isVisible());
    assert.ok(await page.getByText('No emails yet').isVisible());
  },

  async 'the pages that link an identity are accessible and fit the window'(t, fixture) {
    await linkIdentity(t, fixture, 'linking@example.com', { viewport: PHONE }, checkPage);
  },
};

/** Signs a new user in, at the account page. */
async function openAccount(
  t: TestContext,
  { dev, browser, pool }: Fixture,
  email: string,
  options: BrowserContextOptions,
): Promise<Page> {
  await createUser(pool, dev.organization_id, { email, password: PASSWORD });
  const page = await openTab(t, browser, options);
  await page.goto(`${dev.dashboard_url}/account`);
  await enterPassword(page, email, PASSWORD);
  return page;
}

/** Checks the page light and dark, on a screen and on a phone. Afterwards it is light and on a phone, as before. */
async function checkPage(page: Page): Promise<void> {
  for (const viewport of [DESKTOP, PHONE]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page), [], `${page.url()}, ${colorScheme}, ${viewport.width} px`);
    }
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    assert.ok(width <= viewport.width, `${page.url()} is ${width} px wide`);
  }
}

/** @param check is called on every page, in each of its states */
async function useOidc(
  t: TestContext,
  { dev, browser, pool, issuer }: Fixture,
  email: string,
  options: BrowserContextOptions,
  check: (page: Page) => Promise<void>,
): Promise<void> {
  const [strict, other] = [await createOrganization(pool, `Strict ${email}`), await createOrganization(pool, 'Other')];
  await createUser(pool, strict.id, { email, password: PASSWORD });
  issuer.people.set(email, { sub: email, email, email_verified: true });
  const page = await openTab(t, browser, options);
  await page.goto(`${dev.dashboard_url}/members`);
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  await check(page);
  await page.getByRole('link', { name: 'Sign in with Example Login' }).click();
  await page.getByLabel('Address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor();
  await page.getByLabel('Require sign-in with Example Login of all members').check();
  await check(page);
  await page.getByRole('button', { name: 'Save requirements' }).click();
  await page.getByText('The sign-in requirements were saved.').waitFor();
  await page.goto(`${dev.dashboard_url}/account`);
  // On a phone, a cell begins with the name of its column.
  const cell = options.viewport === PHONE ? 'Sign-in Example Login' : 'Example Login';
  await page.getByRole('row', { name: `This session ${cell}` }).waitFor();
  await check(page);

  const outside = await openTab(t, browser, options);
  await outside.goto(dev.dashboard_url);
  await enterPassword(outside, email, PASSWORD);
  await outside.getByRole('heading', { level: 1, name: 'Your password is not accepted here' }).waitFor();
  await check(outside);
  await pool.query(
    `INSERT INTO memberships (org_id, user_id, role) SELECT $1, id, 'viewer' FROM users WHERE email = $2`,
    [other.id, email],
  );
  await outside.goto(dev.dashboard_url);
  await enterPassword(outside, email, PASSWORD);
  await outside.getByRole('heading', { level: 1, name: 'Another sign-in is required' }).waitFor();
  await check(outside);
  await outside.getByRole('button', { name: 'Open Other' }).click();
  await outside.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();

  await outside.goto(`${dev.base_url}${OIDC_CALLBACK}?code=x`);
  await outside.getByRole('heading', { level: 1, name: 'You are not signed in' }).waitFor();
  await check(outside);
}

/** @param check is called on every page, in each of its states */
async function linkIdentity(
  t: TestContext,
  fixture: Fixture,
  email: string,
  options: BrowserContextOptions,
  check: (page: Page) => Promise<void>,
): Promise<void> {
  fixture.issuer.people.set(email, { sub: email, email, email_verified: false });
  const page = await openAccount(t, fixture, email, options);
  await page.getByRole('link', { name: 'Link Example Login' }).click();
  await page.getByLabel('Current password').fill(PASSWORD);
  await check(page);
  await page.getByRole('button', { name: 'Link' }).click();
  await page.getByRole('link', { name: 'Continue to Example Login' }).waitFor();
  await check(page);
  await page.getByRole('link', { name: 'Continue to Example Login' }).click();
  await page.getByLabel('Address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(`Linked to ${fixture.issuer.url}`).waitFor();
  await check(page);
  await page.getByRole('link', { name: 'Unlink' }).click();
  await page.getByRole('heading', { level: 1, name: 'Unlink the identity provider' }).waitFor();
  await check(page);
}

/** @param check is called on every page, in each of its states */
async function useSecondFactor(
  t: TestContext,
  fixture: Fixture,
  email: string,
  options: BrowserContextOptions,
  check: (page: Page) => Promise<void>,
): Promise<void> {
  const page = await openAccount(t, fixture, email, options);
  await page.getByRole('link', { name: 'Set up' }).click();
  await page.getByRole('heading', { level: 1, name: 'Two-factor authentication' }).waitFor();
  await check(page);
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByRole('img', { name: 'QR code of the secret' }).waitFor();
  await check(page);
  const secret = Secret.fromBase32((await page.locator('code').innerText()).trim());
  const codeAt = (timestamp: number) => new TOTP({ secret }).generate({ timestamp });
  await page.getByLabel('Current password').fill(PASSWORD);
  const used = codeAt(Date.now());
  await page.getByLabel('Code').fill(used);
  await page.getByRole('button', { name: 'Turn on' }).click();
  await page.getByRole('heading', { level: 1, name: 'Recovery codes' }).waitFor();
  await check(page);
  const [recoveryCode = '', ...others] = (await page.locator('pre').innerText()).trim().split('\n');
  assert.equal(others.length, 9);

  const other = await openTab(t, fixture.browser, options);
  await other.goto(`${fixture.dev.dashboard_url}/account/second-factor`);
  await enterPassword(other, email, PASSWORD);
  await other.getByRole('heading', { level: 1, name: 'Enter your code' }).waitFor();
  await other.getByLabel('Code').fill(used);
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.getByText('is wrong or was used already').first().waitFor();
  await check(other);
  await other.getByLabel('Code').fill(codeAt(Date.now() + 30_000));
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.getByText('Unused recovery codes: 10.').waitFor();
  await check(other);
  await other.getByLabel('Code').fill(recoveryCode);
  await other.getByRole('button', { name: 'Turn off' }).click();
  await other.getByText('Two-factor authentication is off.').waitFor();
}
