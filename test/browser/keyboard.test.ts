import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { sendMail } from './content.ts';

const focusedRow = (page: Page) =>
  page.evaluate<number>(`[...document.querySelectorAll('tbody tr')].indexOf(document.activeElement.closest('tr'))`);
const zone = (page: Page) => page.locator('[data-zone]').textContent();

test('keyboard, time zone and menu', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  for (let n = 0; n < 3; n++) await sendMail(dev, { subject: `Email ${n}` });
  const at = new Date(Math.ceil(Date.now() / 60_000 + 24 * 60) * 60_000).toISOString();
  const scheduled = await sendMail(dev, { subject: 'Scheduled', scheduled_at: at });

  await t.test('j and k move through the rows and Enter opens one', async (inner) => {
    const page = await openTab(inner, browser);
    await signIn(page, dev, '/emails');
    for (const [key, row] of [
      ['j', 0],
      ['j', 1],
      ['j', 2],
      ['k', 1],
    ] as const) {
      await page.keyboard.press(key);
      assert.equal(await focusedRow(page), row, key);
    }
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/emails\/em_/);
  });

  await t.test('g and a letter open a page, and ? shows the keys', async (inner) => {
    const page = await openTab(inner, browser);
    await signIn(page, dev, '/emails');
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.waitForURL(/\/domains$/);
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await dialog.waitFor();
    await dialog.getByText('Next row').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    assert.match(page.url(), /\/domains$/, 'an open dialog keeps the keys');
  });

  await t.test('/ goes to the search field, and letters that are typed there stay letters', async (inner) => {
    const page = await openTab(inner, browser);
    await signIn(page, dev, '/emails');
    await page.keyboard.press('/');
    const field = page.locator('[data-search]').first();
    await page.keyboard.type('gd?j/k');
    assert.equal(await field.inputValue(), 'gd?j/k');
    assert.match(page.url(), /\/emails$/);
    assert.equal(await page.getByRole('dialog').filter({ visible: true }).count(), 0);
  });

  await t.test("times are in the browser's zone, or in the one that the user has set", async (inner) => {
    const page = await openTab(inner, browser, { locale: 'en-US', timezoneId: 'America/New_York' });
    await signIn(page, dev, '/emails');
    assert.equal(await zone(page), 'America/New_York');
    await page.goto(`${dev.dashboard_url}/emails/${scheduled}`);
    const local = new Intl.DateTimeFormat('sv-SE', {
      timeZone: 'America/New_York',
      dateStyle: 'short',
      timeStyle: 'short',
    });
    const shown = local.format(new Date(at)).replace(' ', 'T');
    assert.equal(await page.getByLabel('Send at').inputValue(), shown);
    assert.equal(await page.getByLabel('Time zone').inputValue(), 'America/New_York');
    await page.goto(`${dev.dashboard_url}/emails`);
    await page.getByLabel('Since (America/New_York)').waitFor();

    await page.getByRole('link', { name: 'Change time zone' }).click();
    await page.getByLabel('Time zone').fill('Asia/Tokyo');
    await page.getByRole('button', { name: 'Save time zone' }).click();
    await page.getByRole('status').filter({ hasText: 'Times are in Asia/Tokyo.' }).waitFor();
    await page.goto(`${dev.dashboard_url}/emails`);
    assert.equal(await zone(page), 'Asia/Tokyo');
    const time = page.locator('tbody time').first();
    const exact = new Intl.DateTimeFormat('en-US', { timeZone: 'Asia/Tokyo', dateStyle: 'medium', timeStyle: 'long' });
    const instant = (await time.getAttribute('datetime')) ?? '';
    assert.equal(await time.getAttribute('title'), exact.format(new Date(instant)), 'the exact time with its zone');
    await page.goto(`${dev.dashboard_url}/emails/${scheduled}`);
    assert.equal(await page.getByLabel('Time zone').inputValue(), 'Asia/Tokyo');
  });

  await t.test('without JavaScript times are in UTC and say so', async (inner) => {
    const page = await openTab(inner, browser, { javaScriptEnabled: false, timezoneId: 'America/New_York' });
    await signIn(page, dev, '/emails');
    assert.equal(await zone(page), 'UTC');
    assert.match((await page.locator('tbody time').first().textContent()) ?? '', /UTC$/);
  });

  await t.test('recent times are relative, with the exact one as title', async (inner) => {
    const page = await openTab(inner, browser, { locale: 'en-US', timezoneId: 'UTC' });
    await signIn(page, dev, '/domains');
    const time = page.locator('time[data-relative]').first();
    if ((await time.count()) === 0) await page.goto(`${dev.dashboard_url}/keys`);
    await page.clock.setFixedTime(new Date(Date.now() + 2 * 3_600_000));
    await page.reload();
    assert.match((await time.textContent()) ?? '', /^[12] hours? ago$/);
    // The user has set Asia/Tokyo above.
    assert.match((await time.getAttribute('title')) ?? '', /\d{4}.*GMT\+9$/);
  });

  for (const javaScriptEnabled of [true, false]) {
    await t.test(
      `on a phone a menu opens all pages, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`,
      async (inner) => {
        const page = await openTab(inner, browser, { viewport: PHONE, javaScriptEnabled });
        await signIn(page, dev, '/emails');
        const navigation = page.getByRole('navigation', { name: 'Main' });
        assert.equal(await navigation.isVisible(), false);
        await page.getByRole('button', { name: 'Menu' }).click();
        await navigation.waitFor();
        const links = navigation.getByRole('link');
        for (const link of await links.all()) {
          await link.scrollIntoViewIfNeeded();
          assert.ok(await link.isVisible(), (await link.textContent()) ?? '');
        }
        await navigation.getByRole('link', { name: 'Audit log' }).click();
        await page.waitForURL(/\/audit$/);
      },
    );
  }
});
