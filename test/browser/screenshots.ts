import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import upng from 'upng-js';
import { findPages } from '../../dev/fixtures/page-links.ts';
import { visitor } from '../../dev/fixtures/visitor.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { ROOT } from '../support/root.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { fillOrganization } from './content.ts';

/**
 * `npm run screenshots`: a picture of each page to look at, in `.screenshots/`, light, dark and on a phone, of an organization with
 * plausible and messy content. Those of the README go to `docs/screenshots/`, with few colors.
 */

const FOLDER = join(ROOT, '.screenshots');
const IN_README = ['overview', 'emails', 'emails-one'];
const COLORS = 96;

test('a picture of each page', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  await fillOrganization(t, dev);
  await storePast(dev);
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER);
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
    const pages: [Page, string][] = [
      [member, name],
      [dark, `${name}-dark`],
      [phone, `${name}-phone`],
    ];
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

/** Writes a picture of the whole page, and one of the window for the README. */
async function take(page: Page, name: string): Promise<void> {
  await page.screenshot({ animations: 'disabled', fullPage: true, path: join(FOLDER, `${name}.png`) });
  if (!IN_README.includes(name)) return;
  const { buffer } = new Uint8Array(await page.screenshot({ animations: 'disabled' }));
  const image = upng.decode(buffer);
  const small = upng.encode(upng.toRGBA8(image), image.width, image.height, COLORS);
  await writeFile(join(ROOT, 'docs/screenshots', `${name}.png`), Buffer.from(small));
}

/** Stores counts for the chart of the overview, more by day than by night. */
async function storePast(dev: DevFile): Promise<void> {
  const pool = makePool(dev.database_url, 'screenshots', 1, () => undefined);
  try {
    await pool.query(
      `INSERT INTO stat_additions (org_id, channel, hour, domain, tags, states, bounced_for, bounced_states, sent_step,
                                   delivered_step, messages)
       SELECT $1, 'email', date_trunc('hour', now(), 'UTC') - n * interval '1 hour', 'example.com',
              '[{"name": "kind", "value": "receipt"}]', states, reason, CASE WHEN reason IS NOT NULL THEN states END,
              sent_step, delivered_step, ceil(part * (60 + 50 * sin((24 - n) / 24.0 * 2 * pi() - 2) + 17 * (n * 7 % 5)))
       FROM generate_series(1, 23) AS n CROSS JOIN (VALUES
         -- accepted 1, sent 2, delivered 4, bounced 16, complained 32, opened 64, clicked 128
         (7, NULL, 15, 19, 6), (71, NULL, 17, 22, 3), (199, NULL, 21, 27, 1), (3, NULL, 15, NULL, 0.1),
         (19, 'mailbox_full', 17, NULL, 0.06), (19, 'mailbox_not_found', 15, NULL, 0.04), (39, NULL, 15, 19, 0.002)
       ) AS kind (states, reason, sent_step, delivered_step, part)`,
      [dev.organization_id],
    );
  } finally {
    await pool.end();
  }
}
