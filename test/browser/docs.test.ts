import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { violations } from './axe.ts';
import { DESKTOP, openBrowser, openTab, PHONE } from './browser.ts';

const service = await useService();

/** Every page of the documentation, from the links of its navigation. */
async function paths(page: Page): Promise<string[]> {
  await page.goto(`${service.url}/docs`);
  const links = await page.evaluate<string[]>(
    `[...document.querySelectorAll('nav.pages a')].map((link) => link.getAttribute('href'))`,
  );
  return ['/docs', '/docs/search?q=idempotency', ...links.filter((link) => link.startsWith('/docs/'))];
}

async function open(t: TestContext, page: Page, path: string): Promise<void> {
  const response = await page.goto(service.url + path);
  assert.equal(response?.status(), 200, `${t.name}: ${path}`);
}

test('axe finds nothing on any page of the documentation, light or dark, wide or narrow', async (t) => {
  const browser = await openBrowser(t);
  for (const viewport of [DESKTOP, PHONE]) {
    const page = await openTab(t, browser, { viewport });
    const all = await paths(page);
    assert.ok(all.length >= 25, all.join(' '));
    for (const path of all) {
      await t.test(`${path}, ${viewport.width} px`, async (inner) => {
        await open(inner, page, path);
        // What is folded is checked as well.
        await page.evaluate(`document.querySelectorAll('details').forEach((details) => (details.open = true))`);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await violations(page), [], colorScheme);
        }
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        assert.ok(width <= viewport.width, `the page is ${width} px wide`);
      });
    }
  }
});

test('the search shows sections while one types, and keys lead to them', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: DESKTOP });
  await open(t, page, '/docs');
  await page.keyboard.press('/');
  await page.keyboard.type('suppression lst');
  await page.locator('.results a').first().waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.results').isVisible(), false);
  await page.keyboard.type(' ');
  await page.getByRole('searchbox').fill('How to verify a domain?');
  await page.locator('.results a:first-child', { hasText: 'Verify a domain' }).waitFor();
  await page.getByRole('searchbox').fill('suppression list');
  await page.locator('.results a', { hasText: 'Suppression list' }).first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/docs\/.+/);
});

test('the search loads its files again after they could not be loaded', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: DESKTOP });
  const refused = new Set<string>();
  await page.route(/(?:search\.json|minisearch\.js)(?:\?\d+)?$/, async (route) => {
    const [url = ''] = route.request().url().split('?');
    if (refused.has(url)) return route.continue();
    refused.add(url);
    return route.fulfill({ status: 429, json: { error: {} } });
  });
  await open(t, page, '/docs');
  await page.keyboard.press('/');
  await page.getByRole('searchbox').fill('suppression list');
  await eventually(
    'the results are shown',
    async () => {
      await page.getByRole('searchbox').press('Space');
      return page.locator('.results a').first().isVisible();
    },
    20_000,
  );
  assert.equal(refused.size, 2);
});

test('pages work where the browser blocks the storage', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: DESKTOP });
  await page.addInitScript(`Object.defineProperty(window, 'localStorage', {
    get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); },
  })`);
  await open(t, page, '/docs/api/emails');
  await page.locator('.languages').first().getByRole('radio', { name: 'Python' }).check();
  await page.locator('[data-language="python"]').last().waitFor();
  await page.getByRole('searchbox').fill('suppression list');
  await page.locator('.results a').first().waitFor();
});

test('/ with Control or Alt stays with the browser', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: DESKTOP });
  await open(t, page, '/docs');
  const isFocused = () => page.evaluate<boolean>(`document.activeElement.matches('input[type="search"]')`);
  for (const keys of ['Control+/', 'Alt+/', 'Meta+/']) {
    await page.keyboard.press(keys);
    assert.equal(await isFocused(), false, keys);
  }
  await page.keyboard.press('/');
  assert.equal(await isFocused(), true);
});

test('a language that is chosen once counts for every request, also on the next page', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: DESKTOP });
  await open(t, page, '/docs/api/emails');
  const visible = async () => [
    ...new Set(
      await page.evaluate<string[]>(
        `[...document.querySelectorAll('[data-language]')].filter((code) => code.checkVisibility())
           .map((code) => code.dataset.language)`,
      ),
    ),
  ];
  assert.deepEqual(await visible(), ['curl']);
  await page.locator('.languages').first().getByRole('radio', { name: 'Python' }).check();
  assert.deepEqual(await visible(), ['python']);
  await open(t, page, '/docs/api/domains');
  assert.deepEqual(await visible(), ['python']);
});

test('without JavaScript a language can be chosen, the menu opens on a phone, and the search works', async (t) => {
  const page = await openTab(t, await openBrowser(t), { viewport: PHONE, javaScriptEnabled: false });
  await open(t, page, '/docs/api/erasures');
  await page.getByRole('radio', { name: 'Go' }).check();
  await page.locator('[data-language="go"]').waitFor();
  assert.equal(await page.locator('[data-language="curl"]').isVisible(), false);
  assert.equal(await page.getByRole('navigation', { name: 'Documentation' }).isVisible(), false);
  await page.getByRole('link', { name: 'Menu', exact: true }).click();
  await page
    .getByRole('navigation', { name: 'Documentation' })
    .getByRole('link', { name: 'Webhooks' })
    .first()
    .waitFor();
  await page.getByRole('searchbox').fill('idempotency');
  await page.getByRole('searchbox').press('Enter');
  await page.locator('main').getByRole('link', { name: 'Idempotency keys' }).first().click();
  await page.waitForURL(/\/docs\/sending#idempotency-keys$/);
});
