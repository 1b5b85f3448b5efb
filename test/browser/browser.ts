import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { DevFile } from '../../src/main/dev-file.ts';
import { findChromium } from '../support/chromium.ts';
import type { DnsServer } from '../support/dns-server.ts';

export const DESKTOP = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };
const TIMEOUT_MS = 15_000;

/**
 * A headless browser in the locale C.UTF-8, which is no language tag and therefore the hardest one for scripts. It ends with the
 * test.
 */
export async function openBrowser(t: TestContext): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: await findChromium(process.env),
    // Root has no sandbox, and containers have little shared memory.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--disable-dev-shm-usage'],
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  });
  t.after(() => browser.close());
  return browser;
}

/**
 * An empty tab of a new browser context. It must end without errors of scripts, of the Content-Security-Policy and of missing
 * files.
 */
export async function openTab(t: TestContext, browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(TIMEOUT_MS);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(`${page.url()}: ${error.message}`));
  page.on('console', (message) => {
    // Browsers and htmx also log the 4xx answers to refused forms and refreshes.
    const isAnswer = /(?:status of|Status Error Code) 4(?:01|03|09|22|29)/.test(message.text());
    if (message.type() === 'error' && !isAnswer) errors.push(`${page.url()}: ${message.text()}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(errors, []);
  });
  return page;
}

/** The user of `npm start`, or another one of its dashboard. */
export type Account = Pick<DevFile, 'dashboard_url' | 'dashboard_email' | 'dashboard_password'>;

/** Signs in, and opens a path below the dashboard. */
export async function signIn(page: Page, dev: Account, path = ''): Promise<void> {
  await page.goto(dev.dashboard_url + path);
  await enterPassword(page, dev.dashboard_email, dev.dashboard_password);
  // On a phone it is hidden behind a button.
  await page.locator('nav.main').waitFor({ state: 'attached' });
}

/** Fills in the form of the sign-in page. */
export async function enterPassword(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Adds the records on the page of a domain to its name server. */
export async function publishRecords(page: Page, dns: DnsServer): Promise<void> {
  const records = page.locator('.records tbody tr:not(.finding)');
  await records.first().waitFor();
  assert.ok((await records.count()) >= 3, 'ownership, DKIM and return path at least');
  for (const record of await records.all()) {
    const type = (await record.locator('td').first().textContent()) ?? '';
    const [name = '', value = ''] = await record.locator('.copy code').allTextContents();
    if (type.includes('CNAME')) dns.cname(name, value);
    else dns.txt(name, value);
  }
}
