import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createUser } from '../../src/accounts/users.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';
import { DESKTOP, openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { sendMail } from './content.ts';

const LONG_TO = 'bounced+mailbox_not_found@dorothy2274.example.com';
const TAGS = [
  { name: 'campaign', value: 'black-friday-early-access' },
  { name: 'customer', value: 'c4711' },
];

/** Regions of tables whose content is wider than they are. */
async function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(
    `[...document.querySelectorAll('.table')].filter((table) => table.scrollWidth > table.clientWidth)
       .map((table) => table.getAttribute('aria-label'))`,
  );
}

/** Labels below the chart, each with the title of the bar above its begin. */
async function axisLabels(page: Page): Promise<{ text: string; at: string; bar: string }[]> {
  return page.evaluate(`[...document.querySelectorAll('.axis > *')].map((label) => {
    const { left } = label.getBoundingClientRect();
    const bar = [...document.querySelectorAll('.chart svg a')].findLast(
      (bar) => bar.querySelector('.empty').getBoundingClientRect().left <= left + 4,
    );
    return { text: label.textContent, at: label.dateTime ?? '', bar: bar.querySelector('title').textContent };
  })`);
}

/** Heights of the rows of the first table, in pixels. */
async function rowHeights(page: Page): Promise<number[]> {
  return page.evaluate(
    `[...document.querySelector('.table').querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().height)`,
  );
}

test('lists, tables and the overview', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  const pool = makePool(dev.database_url, 'test', 1, () => undefined);
  t.after(() => pool.end());

  await t.test('an empty list of emails and an empty overview show a new one by themselves', async (inner) => {
    const { id } = await createOrganization(pool, 'Empty');
    const user = { email: 'owner@empty.example', password: 'a long password' };
    await createUser(pool, id, user);
    await registerDomainForOperator(pool, id, 'mail.empty.example', true);
    const page = await openTab(inner, browser);
    await signIn(page, { ...dev, dashboard_email: user.email, dashboard_password: user.password });
    await page.getByText('No emails yet').waitFor();
    const [list, other] = [await page.context().newPage(), await page.context().newPage()];
    await list.goto(`${dev.dashboard_url}/emails`);
    await list.getByText('No emails yet').waitFor();
    await other.goto(dev.dashboard_url);
    await other.getByRole('button', { name: `Send test email to ${user.email}` }).click();
    for (const waiting of [list, page]) {
      await waiting.bringToFront();
      await waiting.locator('.table tbody tr').getByText(user.email).waitFor();
    }
  });

  await sendMail(dev, { to: LONG_TO, subject: 'The order that you have waited for '.repeat(5), tags: TAGS });
  const scheduled_at = new Date(Date.now() + 86_400_000).toISOString();
  await sendMail(dev, { to: `${'a'.repeat(50)}@example.com`, scheduled_at, tags: TAGS });
  for (let n = 0; n < 20; n++) await sendMail(dev, { to: [LONG_TO, 'ada@example.com'], tags: TAGS });

  await t.test('a list of emails has 17 rows of one line on a screen', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP });
    await signIn(page, dev, '/emails');
    assert.deepEqual(await cutOff(page), []);
    const heights = await rowHeights(page);
    assert.ok(Math.max(...heights) <= Math.min(...heights) + 1, `rows of ${heights.join(', ')} px`);
    const visible = await page.evaluate<number>(
      `[...document.querySelectorAll('tbody tr')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length`,
    );
    assert.ok(visible >= 17, `${visible} rows`);
  });

  await t.test('the whole row leads to the email, and a tag to its list', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP });
    await signIn(page, dev, '/emails');
    const cell = await page.locator('tbody tr').first().locator('td').nth(1).boundingBox();
    assert.ok(cell);
    await page.mouse.click(cell.x + cell.width / 2, cell.y + cell.height / 2);
    await page.waitForURL(/\/emails\/em_/);
    await page.goBack();
    await page.locator('tbody tr').first().getByRole('link', { name: 'customer:c4711' }).click();
    await page.waitForURL(/tag=customer/);
  });

  await t.test('times of today have no day, and their title has all of it', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP, locale: 'en-US', timezoneId: 'UTC' });
    await signIn(page, dev, '/emails');
    const time = page.locator('tbody tr').first().locator('td:last-child time');
    const accepted = new Date((await time.getAttribute('datetime')) ?? '');
    const shownOn = async (day: Date) => {
      await page.clock.setFixedTime(day);
      await page.reload();
      return (await time.textContent()) ?? '';
    };
    assert.match(await shownOn(accepted), /^\d+:\d\d\s[AP]M$/);
    const later = new Date(Date.UTC(accepted.getUTCFullYear() + 1, 0, 1));
    assert.match(await shownOn(later), /^\w+ \d+, \d{4}$/);
    assert.match((await time.getAttribute('title')) ?? '', /\d{4}.* UTC$/);
  });

  await t.test('the chart of the overview fits a phone when all of its hours are of another day', async (inner) => {
    const page = await openTab(inner, browser, { viewport: PHONE, locale: 'en-US', timezoneId: 'UTC' });
    await signIn(page, dev);
    await page.clock.setFixedTime(new Date(Date.now() + 24 * 3_600_000));
    await page.reload();
    const labels = page.locator('.chart .axis time');
    const texts = await labels.allTextContents();
    assert.ok(texts.length >= 4 && texts.every((text) => /^\w+ \d+, \d/.test(text)), texts.join('; '));
    let end = 0;
    for (const label of await labels.all()) {
      const { x, width } = (await label.boundingBox()) ?? { x: 0, width: 0 };
      assert.ok(x >= end, `a label begins at ${x} px, and the one before ends at ${end}`);
      end = x + width;
    }
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    assert.ok(width <= PHONE.width, `the page is ${width} px wide`);
  });

  await t.test('each label of the axis stands below its hour or day, in the language of the browser', async (inner) => {
    const page = await openTab(inner, browser, { locale: 'de-DE', timezoneId: 'America/New_York' });
    await signIn(page, dev);
    const hours = await axisLabels(page);
    const inNewYork = new Intl.DateTimeFormat('de-DE', { timeZone: 'America/New_York', hour: '2-digit' });
    assert.equal(hours.length, 4);
    for (const { text, at, bar } of hours) {
      const [, hour] = /(\d+):00$/.exec(text) ?? [];
      assert.equal(Number(hour), parseInt(inNewYork.format(new Date(at)), 10), `${text}: ${at}`);
      assert.ok(bar.startsWith(`${at.slice(0, 10)} ${at.slice(11, 16)} UTC`), `${text}, ${at}: ${bar}`);
    }
    await page.getByRole('link', { name: 'Last 30 days' }).click();
    await page.waitForURL(/range=30d/);
    const days = await axisLabels(page);
    assert.equal(days.length, 5);
    for (const { text, bar } of days) assert.equal(text, `${bar.slice(5, 10)} UTC`);
  });

  for (const path of ['', '/audit']) {
    await t.test(`nothing is cut off on /dashboard${path}`, async (inner) => {
      const page = await openTab(inner, browser, { viewport: DESKTOP });
      await signIn(page, dev, path);
      await page.locator('.table:visible').first().waitFor();
      assert.deepEqual(await cutOff(page), []);
      const heights = path === '' ? [] : await rowHeights(page);
      assert.ok(
        heights.every((height) => height < 45),
        `rows of ${heights.join(', ')} px`,
      );
    });
  }

  await t.test('the controls of filters are level, with an error below one or a long label too', async (inner) => {
    for (const timezoneId of ['UTC', 'America/New_York']) {
      const page = await openTab(inner, browser, { timezoneId });
      await signIn(page, dev);
      await page.goto(`${dev.dashboard_url}/emails?created_after=bad`);
      await page.getByLabel(`Since (${timezoneId})`).and(page.locator('[aria-invalid=true]')).waitFor();
      const boxes = await page.evaluate<{ top: number; inField: number; height: number }[]>(
        `[...document.querySelectorAll('.filters > .field > :is(input, select, .choices)')].map((control) => {
           const { top, height } = control.getBoundingClientRect();
           return { top, inField: top - control.parentElement.getBoundingClientRect().top, height };
         })`,
      );
      assert.equal(boxes.length, 5);
      // With longer labels the filters need two lines.
      for (const name of timezoneId === 'UTC' ? (['top', 'height'] as const) : (['inField', 'height'] as const))
        assert.equal(new Set(boxes.map((box) => box[name])).size, 1, JSON.stringify(boxes));
    }
  });

  await t.test('breadcrumbs have separators only between them, and the title is level with its tabs', async (inner) => {
    const page = await openTab(inner, browser);
    await signIn(page, dev);
    const middleOf = async (selector: string) => {
      const { y, height } = (await page.locator(selector).boundingBox()) ?? { y: NaN, height: NaN };
      return y + height / 2;
    };
    const [title, tabs] = [await middleOf('h1'), await middleOf('.title .tabs')];
    assert.ok(Math.abs(title - tabs) < 1, `${title} px and ${tabs} px`);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Domains' }).click();
    await page.locator('tbody th a').first().click();
    await page.waitForURL(/domains\/dm_/);
    await page.goto(`${page.url()}/tracking`);
    const separators = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.crumbs li')].map((crumb) => getComputedStyle(crumb, '::after').content)`,
    );
    assert.deepEqual(separators, ['"/"', 'none']);
  });

  await t.test('headings of number columns stand over their numbers', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP });
    await signIn(page, dev, '/emails');
    await page.locator('tbody tr').first().getByRole('link').first().click();
    const table = page.getByRole('region', { name: 'Attempts' });
    await table.locator('td.number').first().waitFor();
    const alignments = await page.evaluate<string[]>(
      `[...document.querySelectorAll('[aria-label=Attempts] .number')].map((cell) => getComputedStyle(cell).textAlign)`,
    );
    assert.ok(alignments.length >= 2, 'a heading and a number');
    assert.deepEqual([...new Set(alignments)], ['right']);
  });

  await t.test('an id stays on one line', async (inner) => {
    for (const viewport of [DESKTOP, PHONE]) {
      const page = await openTab(inner, browser, { viewport });
      await signIn(page, dev, '/emails');
      await page.locator('tbody tr').first().getByRole('link').first().click();
      const box = await page.locator('.copy.line code').first().boundingBox();
      assert.ok(box !== null && box.height < 30, `${box?.height} px high at ${viewport.width} px`);
    }
  });

  await t.test('badges of all kinds make rows of one height', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP });
    await signIn(page, dev, '/emails');
    const tops = await page.evaluate<number[]>(`[...'abc'].map((_, n) => {
      const badge = document.querySelector('.badge');
      badge.className = ['badge waiting', 'badge ended', 'badge bad'][n];
      return badge.getBoundingClientRect().top;
    })`);
    assert.ok(Math.max(...tops) - Math.min(...tops) < 0.5, tops.join(', '));
  });

  await t.test('the subject of an email is visible at every width of the window', async (inner) => {
    const page = await openTab(inner, browser);
    await signIn(page, dev, '/emails');
    for (const width of [390, 769, 900, 1100, DESKTOP.width]) {
      await page.setViewportSize({ width, height: DESKTOP.height });
      const box = await page.locator('tbody th a').first().boundingBox();
      assert.ok(box !== null && box.width > 120, `${box?.width} px at ${width} px`);
    }
  });

  await t.test('a row with actions is a card with labels on a phone, and nothing of it is cut off', async (inner) => {
    const page = await openTab(inner, browser, { viewport: PHONE });
    await signIn(page, dev, '/keys');
    assert.deepEqual(await cutOff(page), []);
    const row = page.locator('tbody tr').first();
    const { x, width } = (await row.getByRole('button', { name: 'Revoke' }).boundingBox()) ?? { x: -1, width: 0 };
    assert.ok(x >= 0 && x + width <= PHONE.width, `the button ends at ${x + width} px`);
    const label = await page.evaluate<string>(
      `getComputedStyle(document.querySelector('tbody td'), '::before').content`,
    );
    assert.equal(label, '"Permission"');
  });

  await t.test('the problem of a DNS record is visible on a phone without scrolling', async (inner) => {
    const { id } = await call<{ id: string }>(dev, 'POST', '/v1/domains', { name: 'news.northwind.example' });
    const page = await openTab(inner, browser, { viewport: PHONE });
    await signIn(page, dev, `/domains/${id}`);
    const finding = page.locator('.finding .notice').first();
    await eventually('the page shows what the first check of DNS found', async () => {
      await page.reload();
      return finding.isVisible();
    });
    const { x, width } = (await finding.boundingBox()) ?? { x: -1, width: 0 };
    assert.ok(x >= 0 && x + width <= PHONE.width, `the text ends at ${x + width} px`);
  });

  await t.test('a long name of the organization leaves room for the search field', async (inner) => {
    const page = await openTab(inner, browser, { viewport: DESKTOP });
    await signIn(page, dev);
    await page.evaluate(
      `document.querySelector('.organization').textContent = 'Northwind Books and Records '.repeat(20)`,
    );
    const box = await page.locator('header .search').boundingBox();
    assert.ok(box !== null && box.width > 280, `${box?.width} px`);
  });

  await t.test('an email is a card on a phone', async (inner) => {
    const page = await openTab(inner, browser, { viewport: PHONE });
    await signIn(page, dev, '/emails');
    assert.deepEqual(await cutOff(page), []);
    const heights = await rowHeights(page);
    assert.ok(Math.max(...heights) < 90, `cards of ${heights.join(', ')} px`);
    assert.ok(await page.locator('tbody tr').first().getByText(LONG_TO).isVisible());
  });

  await t.test('no page is wider than a phone because of a long name', async (inner) => {
    const name = `${'notifications-of-northern-europe.'.repeat(5)}example`;
    const { id } = await call<{ id: string }>(dev, 'POST', '/v1/domains', { name });
    const headers = { [`X-${'Entity-Reference-'.repeat(7)}`]: 'a' };
    const to = `bounced+mailbox_not_found@${'dorothy2274'.repeat(5)}.example.com`;
    const emailId = await sendMail(dev, { to, headers });
    await eventually(
      'the bounce',
      async () => (await call(dev, 'GET', `/v1/emails/${emailId}`))['status'] === 'bounced',
    );
    const page = await openTab(inner, browser, { viewport: PHONE });
    await signIn(page, dev);
    for (const path of ['/keys/new', `/domains/${id}`, `/domains/${id}/tracking`, `/emails/${emailId}`]) {
      await page.goto(dev.dashboard_url + path);
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      assert.ok(width <= PHONE.width, `${path} is ${width} px wide`);
    }
  });

  await t.test('large numbers of the overview have separators, and bounces their share', async (inner) => {
    await pool.query(
      `INSERT INTO stat_additions (org_id, channel, hour, domain, states, bounced_for, bounced_states, messages)
       VALUES ($1, 'email', date_trunc('hour', now(), 'UTC'), 'example.com', 19, 'mailbox_full', 19, 12345)`,
      [dev.organization_id],
    );
    const page = await openTab(inner, browser);
    await signIn(page, dev);
    const bounces = page.getByRole('region', { name: 'Bounces by reason' }).getByRole('row', { name: 'mailbox full' });
    const [emails, share] = await bounces.locator('td').allTextContents();
    assert.equal(emails, '12,345');
    assert.match(share ?? '', /^99\.\d+ %$/);
    const texts = await page.locator('td.number, .rates dd, .scale span').allTextContents();
    assert.deepEqual(
      texts.filter((text) => /(?<![.\d])\d{4}/.test(text)),
      [],
    );
  });
});
