import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPages, patternOf, PATTERNS } from '../../dev/fixtures/page-links.ts';
import { visitor } from '../../dev/fixtures/visitor.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createReset } from '../../src/accounts/password-reset.ts';
import { invite } from '../../src/accounts/invitations.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { emptyHome, startSendwright } from '../support/start.ts';
import { violations } from './axe.ts';
import { DESKTOP, openBrowser, openTab, PHONE, signIn } from './browser.ts';
import { fillOrganization } from './content.ts';

/** Linked only with an identity provider; `accounts.test.ts` opens them. */
const WITH_ISSUER = [
  '/dashboard/account/oidc',
  '/dashboard/sign-in/oidc',
  '/dashboard/sign-in/oidc/callback',
  '/dashboard/sign-in/required',
];

/**
 * Invites the user of `npm start` to another organization, which the account page then links to.
 * @returns the paths of pages that emails link to
 */
async function inviteElsewhere({ database_url, dashboard_email }: DevFile): Promise<string[]> {
  const pool = makePool(database_url, 'test', 1, () => undefined);
  try {
    const { id } = await createOrganization(pool, 'Northwind Wholesale');
    await invite(pool, id, dashboard_email, 'member');
    const { token } = await invite(pool, id, 'new@example.com', 'member');
    const reset = await createReset(pool, dashboard_email);
    return [`/dashboard/invitations/${token}`, `/dashboard/reset-password/${reset}`];
  } finally {
    await pool.end();
  }
}

test('axe finds nothing on any page, light or dark, wide or narrow', async (t) => {
  const dev = await (await startSendwright(t, await emptyHome())).dev();
  const browser = await openBrowser(t);
  await fillOrganization(t, dev);
  const emailed = await inviteElsewhere(dev);
  const tab = await openTab(t, browser);
  await signIn(tab, dev, '/members');
  const storageState = await tab.context().storageState();

  const finder = visitor({ url: dev.base_url });
  await finder.signIn(dev.dashboard_email, dev.dashboard_password);
  const found = await findPages(finder);
  const forgot = '/dashboard/forgot-password';
  const publicPaths = ['/dashboard/sign-in', forgot, `${forgot}/sent`, ...emailed];

  await t.test('every page was found', () => {
    const known = [...found.keys(), ...publicPaths.map(patternOf), ...WITH_ISSUER];
    const missing = PATTERNS.filter((pattern) => !known.includes(pattern));
    assert.deepEqual(missing, [], 'no page links to these');
  });

  const pages: [pattern: string, path: string, isPublic: boolean][] = [
    ...publicPaths.map((path) => [patternOf(path) ?? '', path, true] as [string, string, boolean]),
    // Files, and frames with emails of customers, are not checked.
    ...[...found].flatMap(([pattern, { path, isWhole }]) =>
      isWhole ? [[pattern, path, false] as [string, string, boolean]] : [],
    ),
  ];
  for (const viewport of [DESKTOP, PHONE]) {
    const member = await openTab(t, browser, { viewport, storageState });
    const visitorTab = await openTab(t, browser, { viewport });
    for (const [pattern, path, isPublic] of pages) {
      const page = isPublic ? visitorTab : member;
      let status: number | undefined;
      // A change of the color scheme does not reload the page.
      for (const colorScheme of ['light', 'dark'] as const) {
        await t.test(`${pattern}, ${colorScheme}, ${viewport.width} px`, async () => {
          await page.emulateMedia({ colorScheme });
          status ??= (await page.goto(dev.base_url + path))?.status();
          assert.equal(status, 200);
          assert.equal(await page.evaluate(`matchMedia('(prefers-color-scheme: ${colorScheme})').matches`), true);
          assert.deepEqual(await violations(page), []);
          const width = await page.evaluate<number>('document.documentElement.scrollWidth');
          assert.ok(width <= viewport.width, `the page is ${width} px wide`);
        });
      }
    }
  }

  await t.test('axe reports an input without a label', async () => {
    await tab.setContent('<html lang="en"><title>x</title><main><h1>x</h1><input></main>');
    const found = await violations(tab);
    assert.ok(
      found.some((violation) => violation.startsWith('label: ')),
      found.join('\n'),
    );
  });
});
