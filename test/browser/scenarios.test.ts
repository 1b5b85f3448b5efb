import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { DevFile } from '../../src/main/embedded/dev-file.ts';
import { eventually } from '../support/eventually.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, signIn } from './browser.ts';
import { listenToHooks, sendMail } from './content.ts';

/** What people do in the dashboard of `npm start`, in a browser, with nothing in between. */
test('in a browser', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  for (const [name, run] of Object.entries(SCENARIOS)) await t.test(name, (inner) => run(inner, dev, browser));
});

type Scenario = (t: TestContext, dev: DevFile, browser: Browser) => Promise<void>;

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  async 'somebody signs in with the keyboard alone, and comes to the page he wanted'(t, dev, browser) {
    const page = await openTab(t, browser);
    await page.goto(`${dev.dashboard_url}/members`);
    // The field for the email has the focus already.
    await page.keyboard.type(dev.dashboard_email);
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'not right' }).waitFor();
    assert.equal(await page.getByLabel('Email').inputValue(), dev.dashboard_email, 'what was typed stays');
    assert.equal(await page.getByLabel('Password').inputValue(), '', 'but for the password');
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

    await tabTo(page, 'Account:');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Sign out');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.goto(dev.dashboard_url);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  },

  async 'an endpoint is added, and a delivery that failed is replayed and arrives'(t, dev, browser) {
    const hook = await listenToHooks(t);
    hook.status = 500;
    const page = await openTab(t, browser);
    await signIn(page, dev, '/webhooks');
    await page.getByRole('link', { name: 'Add an endpoint' }).click();
    await page.getByLabel('URL').fill(hook.url);
    await page.getByLabel('Description').fill('Order system');
    await page.getByLabel('email.delivered').check();
    await page.getByRole('button', { name: 'Add the endpoint' }).click();
    const secret = await page.locator('code', { hasText: /^whsec_/ }).textContent();
    assert.match(secret ?? '', /^whsec_[\w+/=]{32,}$/);

    await sendMail(dev);
    await eventually('the endpoint is told', () => hook.posts.length > 0, 20_000);
    await page.getByRole('link', { name: 'Go to the endpoint' }).click();
    assert.ok(!(await page.content()).includes(secret ?? ''), 'the secret is shown once');
    await page.getByRole('link', { name: 'email.delivered' }).click();
    const progress = page.locator('#progress');
    await progress.getByRole('cell', { name: '500' }).waitFor();
    hook.status = 200;
    const url = page.url();
    await page.getByRole('button', { name: 'Send it again' }).click();
    await mark(page);
    await progress.locator('.badge', { hasText: 'succeeded' }).waitFor();
    assert.equal(page.url(), url);
    assert.ok(await isMarked(page), 'the page renewed itself, nobody has loaded it anew');
    const [first, again] = hook.posts;
    assert.deepEqual(again, first, 'the same id and the same body');
  },
};

/** Notes something in the page that is gone when it is loaded anew. */
async function mark(page: Page): Promise<void> {
  await page.evaluate('window.isMarked = true');
}

async function isMarked(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('window.isMarked === true');
}

/** What the keyboard is at, in the words that people read; empty when it has left the page. */
async function focused(page: Page): Promise<string> {
  return page.evaluate<string>(`(() => {
    const { activeElement: at, body } = document;
    return at === null || at === body ? '' : at.innerText || at.getAttribute('aria-label') || '';
  })()`);
}

/** Presses Tab until something with this text has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press('Tab');
    if ((await focused(page)).includes(text)) return;
  }
  assert.fail(`the keyboard does not reach ${text}`);
}
