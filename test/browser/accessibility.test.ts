import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { emptyHome, startSendwright } from '../support/start.ts';
import { DESKTOP, openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { fillOrganization } from './content.ts';
import { findPages, patternOf, PATTERNS } from './crawl.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** WCAG 2.2 at level AA, and what axe's authors hold to be good besides. Frames hold what customers wrote. */
const OPTIONS: RunOptions = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  resultTypes: ['violations'],
  iframes: false,
};
/** Answers that are files, or a frame's content that customers wrote. */
const NO_PAGES = /\.csv$|\/(?:preview|html|frame)$/;

/** What is serious or worse, each with the elements that have it. */
async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(OPTIONS)})`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary = '' }) => `${id}: ${html}\n  ${failureSummary}`));
}

test('axe finds nothing serious on any page, light or dark, wide or narrow', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  await fillOrganization(t, dev);
  const visitor = await openTab(t, browser);
  await signIn(visitor, dev);
  // An invitation's link is shown once, to who invites.
  await visitor.goto(`${dev.dashboard_url}/members`);
  const found = new Map(await findPages(visitor, dev.base_url));
  await visitor.getByLabel('Email').fill('new@example.com');
  await visitor.getByRole('button', { name: 'Make an invitation link' }).click();
  const invitation = await visitor.locator('code', { hasText: '/dashboard/invitations/' }).first().textContent();
  const state = await visitor.context().storageState();

  const strangers = new Map([['/dashboard/sign-in', '/dashboard/sign-in']]);
  const { pathname, search } = new URL(invitation ?? '', dev.base_url);
  strangers.set(patternOf(pathname) ?? '', pathname + search);

  await t.test('every page was found', () => {
    const missing = PATTERNS.filter((pattern) => !found.has(pattern) && !strangers.has(pattern));
    assert.deepEqual(missing, [], 'content.ts fills no page that links to these');
  });

  const pages = [...strangers, ...found].filter(([pattern]) => !NO_PAGES.test(pattern));
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const viewport of [DESKTOP, PHONE]) {
      const options = { colorScheme, viewport };
      const member = await openTab(t, browser, { ...options, storageState: state });
      const stranger = await openTab(t, browser, options);
      for (const [pattern, path] of pages) {
        await t.test(`${pattern}, ${colorScheme}, ${viewport.width} px`, async () => {
          const page = strangers.has(pattern) ? stranger : member;
          const response = await page.goto(dev.base_url + path);
          assert.equal(response?.status(), 200);
          assert.deepEqual(await faults(page), []);
          const width = await page.evaluate<number>('document.documentElement.scrollWidth');
          assert.ok(width <= viewport.width, `it scrolls sideways: ${width} px`);
        });
      }
    }
  }

  await t.test('it would be told', async () => {
    await visitor.setContent('<html lang="en"><title>x</title><main><h1>x</h1><input></main>');
    const told = await faults(visitor);
    assert.ok(
      told.some((fault) => fault.startsWith('label: ')),
      told.join('\n'),
    );
  });
});
