import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import upng from 'upng-js';
import { findPages } from '../../dev/fixtures/page-links.ts';
import { visitor } from '../../dev/fixtures/visitor.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { fillOrganization } from './content.ts';

/**
 * `npm run screenshots`: a picture of each page for docs/, of an organization with plausible content. It replaces all pictures,
 * so that none of a removed page stays.
 */
const FOLDER = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url));
const COLORS = 96;
/** Pages with a second picture. */
const DARK = '/dashboard';
const ON_A_PHONE = '/dashboard/emails/:id';

test('a picture of each page', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  await fillOrganization(t, dev);
  await storePast(dev);
  await mkdir(FOLDER, { recursive: true });
  for (const name of await readdir(FOLDER)) if (name.endsWith('.png')) await rm(FOLDER + name);
  const signedOut = await openTab(t, browser);
  await signedOut.goto(`${dev.dashboard_url}/sign-in`);
  await take(signedOut, 'sign-in');
  const member = await openTab(t, browser);
  await signIn(member, dev);
  const storageState = await member.context().storageState();
  const dark = await openTab(t, browser, { storageState, colorScheme: 'dark' });
  const phone = await openTab(t, browser, { storageState, viewport: PHONE });
  const finder = visitor({ url: dev.base_url });
  await finder.signIn(dev.dashboard_email, dev.dashboard_password);
  for (const [pattern, { path, isWhole }] of await findPages(finder)) {
    if (!isWhole) continue;
    const name = nameOf(pattern);
    const pages: [Page, string][] = [[member, name]];
    if (pattern === DARK) pages.push([dark, `${name}-dark`]);
    if (pattern === ON_A_PHONE) pages.push([phone, `${name}-phone`]);
    for (const [page, picture] of pages) {
      await page.goto(dev.base_url + path);
      await take(page, picture);
    }
  }
});

/** `/dashboard/emails/:id` is `emails-one`. */
function nameOf(pattern: string): string {
  const words = pattern.split('/').slice(2);
  return words.map((word) => (word.startsWith(':') ? 'one' : word)).join('-') || 'overview';
}

/** Writes a picture of the window with few colors, so that the files stay small. */
async function take(page: Page, name: string): Promise<void> {
  const { buffer } = new Uint8Array(await page.screenshot({ animations: 'disabled' }));
  const image = upng.decode(buffer);
  await writeFile(
    `${FOLDER}${name}.png`,
    Buffer.from(upng.encode(upng.toRGBA8(image), image.width, image.height, COLORS)),
  );
}

/** Stores counts for the chart of the overview, more by day than by night. */
async function storePast(dev: DevFile): Promise<void> {
  const pool = makePool(dev.database_url, 'screenshots', 1, () => undefined);
  try {
    await pool.query(
      `INSERT INTO email_hours (org_id, hour, measure, name, emails)
       SELECT $1, date_trunc('hour', now(), 'UTC') - n * interval '1 hour', measure, name,
              ceil(part * (60 + 50 * sin((24 - n) / 24.0 * 2 * pi() - 2) + 17 * (n * 7 % 5)))
       FROM generate_series(1, 23) AS n CROSS JOIN (VALUES
         ('status', 'delivered', 6), ('status', 'opened', 3), ('status', 'clicked', 1), ('status', 'sent', 0.2),
         ('status', 'bounced', 0.2), ('bounce', 'mailbox_full', 0.1), ('bounce', 'mailbox_not_found', 0.06),
         ('sent', '15', 7), ('sent', '17', 3), ('sent', '21', 0.4), ('delivered', '19', 4), ('delivered', '22', 5),
         ('delivered', '27', 1)
       ) AS kind (measure, name, part)
       ON CONFLICT DO NOTHING`,
      [dev.organization_id],
    );
  } finally {
    await pool.end();
  }
}
