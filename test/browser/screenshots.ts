import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import upng from 'upng-js';
import { findPages } from '../dashboard/links.ts';
import { visitor } from '../dashboard/visitor.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { fillOrganization } from './content.ts';

/**
 * `npm run screenshots`: a picture of each page for docs/, of an organization with plausible content. Those that are there
 * are replaced, for a picture of a page that is gone shall not stay.
 */
const FOLDER = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url));
const COLOURS = 96;
/** Pages that are shown otherwise too. */
const DARK = '/dashboard';
const ON_A_PHONE = '/dashboard/emails/:id';

test('a picture of each page', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  await fillOrganization(t, dev);
  await mkdir(FOLDER, { recursive: true });
  for (const name of await readdir(FOLDER)) if (name.endsWith('.png')) await rm(FOLDER + name);
  const stranger = await openTab(t, browser);
  await stranger.goto(`${dev.dashboard_url}/sign-in`);
  await take(stranger, 'sign-in');
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

/** Writes what the window shows, with so few colours that all pictures together stay small. */
async function take(page: Page, name: string): Promise<void> {
  const { buffer } = new Uint8Array(await page.screenshot({ animations: 'disabled' }));
  const image = upng.decode(buffer);
  await writeFile(
    `${FOLDER}${name}.png`,
    Buffer.from(upng.encode(upng.toRGBA8(image), image.width, image.height, COLOURS)),
  );
}
