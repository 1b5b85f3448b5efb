import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Browser } from 'playwright-core';
import { createUser } from '../../src/accounts/users.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab } from './browser.ts';

/** Scenarios of accounts in the dashboard of `npm start`, without scripts: every page must work without them. */
test('accounts in a browser', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  const pool = makePool(dev.database_url, 'test', 2, () => undefined);
  t.after(() => pool.end());
  for (const [name, run] of Object.entries(SCENARIOS))
    await t.test(name, (inner) => run(inner, { dev, browser, pool }));
});

interface Fixture {
  readonly dev: DevFile;
  readonly browser: Browser;
  readonly pool: Pool;
}

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
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password').fill('a new password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
  },
};

/** The link in the only email to an address, once the simulator has it. */
async function linkIn({ inbox_url }: DevFile, to: string): Promise<string | undefined> {
  const answer = await fetch(`${inbox_url}/messages?to=${encodeURIComponent(to)}`);
  const messages = (await answer.json()) as { text: string | null }[];
  assert.ok(messages.length <= 1, 'one email');
  return /http\S+/.exec(messages[0]?.text ?? '')?.[0];
}
