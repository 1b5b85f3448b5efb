import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { DevFile } from '../../src/main/dev-file.ts';
import { findChromium } from '../support/chromium.ts';

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
/** Milliseconds that something may take to be there. */
const WITHIN = 15_000;

/**
 * A browser without windows, in the locale of a plain server wherever it runs: a language that is no language tag is the
 * hardest one for scripts. Ends with the test.
 */
export async function openBrowser(t: TestContext): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: await findChromium(process.env),
    // Root may not have one, and containers give little shared memory.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--disable-dev-shm-usage'],
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
  });
  t.after(() => browser.close());
  return browser;
}

/**
 * An empty tab of a browser that nobody has used yet. When the test ends, nothing may have gone wrong in it: no script
 * that threw, nothing that the Content-Security-Policy held back, no file that was not there.
 */
export async function openTab(t: TestContext, browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(WITHIN);
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(`${page.url()}: ${error.message}`));
  page.on('console', (message) => {
    // Forms that are refused are answered with a status above 400, which browsers note too.
    const isAnswer = /status of 4(?:01|03|09|22|29)/.test(message.text());
    if (message.type() === 'error' && !isAnswer) wrong.push(`${page.url()}: ${message.text()}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  return page;
}

/** Fills in the form to sign in as the user of `npm start`. */
export async function signIn(page: Page, dev: DevFile, path = ''): Promise<void> {
  await page.goto(dev.dashboard_url + path);
  await page.getByLabel('Email').fill(dev.dashboard_email);
  await page.getByLabel('Password').fill(dev.dashboard_password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
}
