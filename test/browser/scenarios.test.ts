import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { DevFile } from '../../src/main/dev-file.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, publishRecords, signIn } from './browser.ts';
import { listenToHooks, sendMail } from './content.ts';

/** User scenarios in the dashboard of `npm start`, in a browser. */
test('in a browser', async (t) => {
  const dns = await startDnsServer();
  t.after(() => dns.close());
  const dev = await (await startSendwright(t, await emptyHome(), { DNS_SERVERS: dns.address })).dev();
  const browser = await openBrowser(t);
  for (const [name, run] of Object.entries(SCENARIOS)) await t.test(name, (inner) => run(inner, { dev, dns, browser }));
});

interface Fixture {
  readonly dev: DevFile;
  /** The name server of the domains. */
  readonly dns: DnsServer;
  readonly browser: Browser;
}

type Scenario = (t: TestContext, fixture: Fixture) => Promise<void>;

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  async 'a user signs in with the keyboard alone and reaches the requested page'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await page.goto(`${dev.dashboard_url}/members`);
    const email = page.locator('input[type=email]:focus');
    await email.waitFor();
    await page.keyboard.type(dev.dashboard_email);
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'not right' }).waitFor();
    assert.equal(await page.getByLabel('Email').inputValue(), dev.dashboard_email, 'the typed email stays');
    assert.equal(await page.getByLabel('Password').inputValue(), '', 'the password does not stay');
    await email.waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type(dev.dashboard_password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/dashboard/members');

    // The first stop of the keyboard leads over the navigation.
    await page.keyboard.press('Tab');
    assert.equal(await focused(page), 'Skip to content');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.closest("main") !== null'), true);

    await pressTabUntil(page, 'Account:');
    await page.keyboard.press('Enter');
    await pressTabUntil(page, 'Sign out');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.goto(dev.dashboard_url);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  },

  async 'an email page follows an email until its delivery without a reload'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await signIn(page, dev, '/emails');
    const id = await sendMail(dev, { subject: 'Watch me', scheduled_at: inSeconds(8) });
    await page.goto(`${dev.dashboard_url}/emails`);
    await page.getByRole('link', { name: 'Watch me' }).first().click();
    assert.equal(new URL(page.url()).pathname, `/dashboard/emails/${id}`);
    const live = page.locator('#live');
    await live.locator('.badge', { hasText: 'scheduled' }).first().waitFor();
    await mark(page);
    await live.locator('.badge', { hasText: 'delivered' }).first().waitFor();
    await live.getByText('Delivered', { exact: true }).waitFor();
    assert.ok(await isMarked(page), 'the page was not reloaded');
    assert.equal(await live.getAttribute('hx-trigger'), null, 'a final state is not polled');
  },

  async 'a part that refreshes itself waits while it contains an open dialog, the focus or a selection'(
    t,
    { dev, browser },
  ) {
    const to = 'suppressed@example.com';
    await call(dev, 'POST', '/v1/suppressions', { emails: [to] });
    const id = await sendMail(dev, { to, scheduled_at: inSeconds(110) });
    const page = await openTab(t, browser);
    await signIn(page, dev, `/emails/${id}`);
    const live = page.locator('#live');
    // Runs after the listener of the dashboard.
    await page.evaluate(`window.refreshes = [];
      document.addEventListener('htmx:beforeRequest', (event) => window.refreshes.push(event.defaultPrevented))`);
    const refreshes = () => page.evaluate<boolean[]>('window.refreshes');
    const forget = () => page.evaluate('window.refreshes.length = 0');
    const assertKept = async () => {
      await forget();
      await eventually('a refresh is due', async () => (await refreshes()).length > 0, 20_000);
      assert.ok((await refreshes()).every((isPrevented) => isPrevented));
    };

    await live.getByRole('button', { name: 'Remove' }).click();
    const dialog = live.getByRole('dialog');
    await dialog.waitFor();
    await assertKept();
    assert.ok(await dialog.isVisible());
    await page.evaluate(`document.getElementById('live').dataset.before = ''`);
    await page.keyboard.press('Escape');
    assert.ok((await focused(page)).includes('Remove'), 'the button of the dialog');
    await assertKept();
    assert.ok((await focused(page)).includes('Remove'));
    await page.evaluate('document.activeElement.blur()');
    await page.locator('#live[data-before]').waitFor({ state: 'detached' });
    await live.waitFor();

    await page.evaluate(`document.getElementById('live').dataset.before = '';
      getSelection().selectAllChildren(document.querySelector('#live tbody th'))`);
    await assertKept();
    assert.equal(await page.evaluate('getSelection().toString().trim()'), to);
    await page.evaluate('getSelection().removeAllRanges()');
    await page.locator('#live[data-before]').waitFor({ state: 'detached' });
    await live.waitFor();

    await page.evaluate(`document.getElementById('live').insertAdjacentHTML(
      'beforeend', '<details open id="opened"><summary>More</summary>Text</details>')`);
    const details = live.locator('#opened');
    await assertKept();
    assert.ok(await details.getByText('Text').isVisible());
    await details.getByText('More').click();
    // The page of the server does not have it.
    await details.waitFor({ state: 'detached' });
  },

  async 'a bar of the overview shows its values and leads to the emails of its hour'(t, { dev, browser }) {
    const id = await sendMail(dev);
    await eventually(
      'it is delivered',
      async () => (await call(dev, 'GET', `/v1/emails/${id}`))['status'] === 'delivered',
    );
    const page = await openTab(t, browser);
    await signIn(page, dev);
    // Recent emails are in the last bar, unless an hour has begun since.
    const bar = page.locator('figure.chart a', { hasText: /: [1-9].* delivered/ }).last();
    await bar.locator('rect').first().click();
    await page.waitForURL(/\/emails\?created_after=.*00%3A00\.000Z&created_before=/);
    await page.locator(`a[href$="/emails/${id}"]`).waitFor();
  },

  async 'a scheduled email is canceled with the keyboard alone'(t, { dev, browser }) {
    const id = await sendMail(dev, { subject: 'Not today', scheduled_at: inSeconds(86_400) });
    const page = await openTab(t, browser);
    await signIn(page, dev, `/emails/${id}`);
    await pressTabUntil(page, 'Cancel email');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    assert.equal(await focused(page), 'Keep scheduled', 'a second Enter changes nothing');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    assert.equal((await call(dev, 'GET', `/v1/emails/${id}`))['status'], 'scheduled');

    await pressTabUntil(page, 'Cancel email');
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await pressTabUntil(page, 'Cancel email');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'Email canceled' }).waitFor();
    await page.locator('#live .badge', { hasText: 'canceled' }).first().waitFor();
    assert.equal((await call(dev, 'GET', `/v1/emails/${id}`))['status'], 'canceled');
  },

  async 'a domain is added, verified by DNS records, and used to send'(t, { dev, dns, browser }) {
    const page = await openTab(t, browser);
    await signIn(page, dev, '/domains');
    await page.getByRole('link', { name: 'Add domain' }).first().click();
    await page.getByLabel('Domain').fill('mail.northwind.example');
    await page.getByRole('button', { name: 'Add domain' }).click();
    await page.getByRole('heading', { level: 1, name: 'mail.northwind.example' }).waitFor();
    const records = page.locator('.records tbody tr:not(.finding)');
    await publishRecords(page, dns);
    await eventually(
      'DNS is asked, and the domain verified',
      async () => {
        await page.getByRole('button', { name: 'Check now' }).click();
        return (await page.locator('.facts .badge', { hasText: 'verified' }).count()) > 0;
      },
      60_000,
    );
    await page.reload();
    await records.first().getByText('verified').waitFor();
    const id = await sendMail({ ...dev, domain: 'mail.northwind.example' });
    assert.match(id, /^em_/);
  },

  async 'a key is created, shown once, used and revoked'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await signIn(page, dev, '/keys');
    await page.getByRole('link', { name: 'Create API key' }).first().click();
    await page.getByLabel('Name').fill('Shop, production');
    await page.getByRole('button', { name: 'Create API key' }).click();
    const key = (await page.locator('.copy code').first().textContent()) ?? '';
    const shop = { ...dev, api_key: key };
    await sendMail(shop, { subject: 'With a new key' });
    const command = (await page.locator('.command code').textContent()) ?? '';
    assert.ok(command.includes(key), 'a request to try, with the key in it');

    await page.getByRole('link', { name: 'Back to API keys' }).click();
    assert.ok(!(await page.content()).includes(key), 'the key is shown once');
    const row = page.getByRole('row').filter({ hasText: 'Shop, production' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await row.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('status').filter({ hasText: 'revoked' }).waitFor();
    await eventually(
      'the key is refused',
      () =>
        sendMail(shop).then(
          () => false,
          () => true,
        ),
      5_000,
    );
  },

  async 'an endpoint is added, and a failed delivery is replayed'(t, { dev, browser }) {
    const hook = await listenToHooks(t);
    hook.status = 500;
    const page = await openTab(t, browser);
    await signIn(page, dev, '/webhooks');
    await page.getByRole('link', { name: 'Add endpoint' }).click();
    await page.getByLabel('URL').fill(hook.url);
    await page.getByLabel('Description').fill('Order system');
    await page.getByLabel('email.delivered').check();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    const secret = await page.locator('code', { hasText: /^whsec_/ }).textContent();
    assert.match(secret ?? '', /^whsec_[\w+/=]{32,}$/);

    await page.getByRole('link', { name: 'Go to the endpoint' }).click();
    await page.getByText('No events yet.').waitFor();
    assert.ok(!(await page.content()).includes(secret ?? ''), 'the secret is shown once');
    await mark(page);
    await sendMail(dev);
    await eventually('the endpoint gets a delivery', () => hook.posts.length > 0, 20_000);
    const delivery = page.getByRole('link', { name: 'email.delivered' });
    await delivery.waitFor();
    assert.ok(await isMarked(page), 'the list was refreshed without a reload');
    await delivery.click();
    const progress = page.locator('#progress');
    await progress.getByRole('cell', { name: '500' }).waitFor();
    hook.status = 200;
    const url = page.url();
    await page.getByRole('button', { name: 'Replay' }).click();
    await mark(page);
    await progress.locator('.badge', { hasText: 'succeeded' }).waitFor();
    assert.equal(page.url(), url);
    assert.ok(await isMarked(page), 'the page was refreshed without a reload');
    const [first, again] = hook.posts;
    assert.deepEqual(again, first, 'the same id and the same body');
  },

  async 'a second click while the server works does not submit a form again'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await signIn(page, dev, '/keys/new');
    // Runs after the listener of the dashboard, and keeps the page open.
    const prevented = await page.evaluate<boolean[]>(`(() => {
      const submits = [];
      document.addEventListener('submit', (event) => {
        submits.push(event.defaultPrevented);
        event.preventDefault();
      });
      const button = document.querySelector('main form button');
      button.click();
      button.click();
      return submits;
    })()`);
    assert.deepEqual(prevented, [false, true]);
  },

  async 'a copy button that is clicked twice gets its label back'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await page.clock.install();
    await signIn(page, dev, '/settings');
    const copy = page.locator('button[data-copy]').first();
    assert.equal(await copy.textContent(), 'Copy');
    for (let n = 0; n < 2; n++) {
      await copy.click();
      await eventually('it reports the copy', async () => (await copy.textContent()) !== 'Copy');
    }
    await page.clock.runFor(60_000);
    assert.equal(await copy.textContent(), 'Copy');
  },
};

function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1_000).toISOString();
}

/** Sets a mark in the page that a reload removes. */
async function mark(page: Page): Promise<void> {
  await page.evaluate('window.isMarked = true');
}

async function isMarked(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('window.isMarked === true');
}

/** The text of the focused element; empty when none has the focus. */
async function focused(page: Page): Promise<string> {
  return page.evaluate<string>(`(() => {
    const { activeElement: at, body } = document;
    return at === null || at === body ? '' : at.innerText || at.getAttribute('aria-label') || '';
  })()`);
}

/** Presses Tab until an element with this text has the focus. */
async function pressTabUntil(page: Page, text: string): Promise<void> {
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press('Tab');
    if ((await focused(page)).includes(text)) return;
  }
  assert.fail(`the keyboard does not reach ${text}`);
}
