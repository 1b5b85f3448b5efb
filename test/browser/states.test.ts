import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { createUser } from '../../src/accounts/users.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';
import { violations } from './axe.ts';
import { openBrowser, openTab, signIn } from './browser.ts';
import { inDays, listenToHooks, mail, sendMail } from './content.ts';

/** What pages say about the state of emails, batches, endpoints and roles, in the dashboard of `npm start`. */
test('states in a browser', async (t) => {
  const settings = { SEND_MAX_ATTEMPTS: '2', SEND_INITIAL_INTERVAL: '1s', SEND_MAX_INTERVAL: '1s' };
  const dev = await (await startSendwright(t, await emptyHome(), settings)).dev();
  const browser = await openBrowser(t);
  const pool = makePool(dev.database_url, 'test', 1, () => undefined);
  t.after(() => pool.end());
  for (const [name, run] of Object.entries(SCENARIOS))
    await t.test(name, (inner) => run(inner, { dev, browser, pool }));
});

interface Fixture {
  readonly dev: DevFile;
  readonly browser: Browser;
  readonly pool: Pool;
}

const SCENARIOS: Readonly<Record<string, (t: TestContext, fixture: Fixture) => Promise<void>>> = {
  async 'a member is offered only what members may do, and its role says so'(t, { dev, browser, pool }) {
    const user = { email: 'member@example.com', password: 'a long password', role: 'member' } as const;
    await createUser(pool, dev.organization_id, user);
    const page = await openTab(t, browser);
    await signIn(page, { ...dev, dashboard_email: user.email, dashboard_password: user.password }, '/members');
    for (const right of ['Create, rename and revoke API keys', 'Add, change and delete webhook endpoints']) {
      const cells = page.getByRole('row').filter({ hasText: right }).getByRole('cell');
      assert.deepEqual(await cells.allTextContents(), ['No', 'No', 'Yes'], right);
    }
    for (const [path, label] of [
      ['/keys', 'Create API key'],
      ['/domains', 'Add domain'],
      ['/webhooks', 'Add endpoint'],
      ['/numbers', 'Connect a number'],
    ] as const) {
      await page.goto(dev.dashboard_url + path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.equal(await page.getByRole('link', { name: label }).count(), 0, label);
    }
    await page.goto(`${dev.dashboard_url}/suppressions`);
    await page.getByRole('link', { name: 'Add addresses' }).waitFor();
  },

  async 'an endpoint that only fails is called failing, and its page refreshes until it is disabled'(
    t,
    { dev, browser },
  ) {
    const hook = await listenToHooks(t);
    hook.status = 503;
    const fields = { url: hook.url, events: ['email.delivered'], description: 'Order system' };
    const { id } = await call<{ id: string }>(dev, 'POST', '/v1/webhooks', fields);
    for (let n = 0; n < 6; n++) await sendMail(dev);
    const isFailing = async () => (await call(dev, 'GET', `/v1/webhooks/${id}`))['failing_since'] !== null;
    await eventually('six deliveries have failed', async () => hook.posts.length >= 6 && (await isFailing()), 30_000);

    const page = await openTab(t, browser);
    await signIn(page, dev);
    const problems = page.getByRole('list', { name: 'Problems' });
    await problems
      .getByText(/The webhook endpoint Order system is failing: every delivery since .* has failed/)
      .waitFor();
    await page.goto(`${dev.dashboard_url}/webhooks`);
    await page.getByRole('row').filter({ hasText: 'Order system' }).locator('.badge', { hasText: 'failing' }).waitFor();
    await page.goto(`${dev.dashboard_url}/webhooks/${id}`);
    const delivery = page.getByRole('row').filter({ hasText: 'email.delivered' }).first();
    assert.match(
      (await delivery.innerText()).replaceAll(/\s+/g, ' '),
      /pending 503 [1-9]/,
      'the status code and attempts',
    );

    // Answered by 410, the endpoint is disabled; other deliveries stay pending.
    hook.status = 410;
    const state = page.locator('#state');
    await sendMail(dev);
    await state.locator('.badge', { hasText: 'disabled' }).waitFor({ timeout: 30_000 });
    await state
      .getByText(/(?:y from before is|ies from before are) waiting and will be sent when you enable it/)
      .waitFor();
    await page.getByRole('cell', { name: 'when enabled' }).first().waitFor();
    assert.deepEqual(await violations(page), []);
    hook.status = 200;
    const before = hook.posts.length;
    await state.getByRole('button', { name: 'Enable' }).click();
    await state.locator('.badge', { hasText: 'enabled' }).waitFor();
    await eventually('the pending deliveries are sent', () => hook.posts.length > before, 30_000);
    await page.locator('#live .badge', { hasText: 'pending' }).first().waitFor({ state: 'detached', timeout: 30_000 });
    await call(dev, 'DELETE', `/v1/webhooks/${id}`);
  },

  async 'the last attempt of a failed email says that Sendwright gave up'(t, { dev, browser }) {
    const page = await openEmail(t, { dev, browser }, 'fail-always@example.com', 'failed');
    const outcomes = page.getByRole('table', { name: 'Attempts' }).locator('tbody td:nth-child(5)');
    const [last = '', ...before] = (await outcomes.allTextContents()).toReversed();
    assert.match(last, /, gave up$/);
    assert.ok(before.length > 0 && before.every((outcome) => !outcome.includes('gave up')), before.join('; '));
  },

  async 'the simulated addresses fail-once and slow are delivered'(t, { dev, browser }) {
    for (const to of ['fail-once@example.com', 'slow@example.com']) {
      await openEmail(t, { dev, browser }, to, 'delivered');
    }
  },

  async 'the timeline has the clicked link, both times of a reschedule, and the response to a bounce'(t, fixture) {
    const { dev, browser } = fixture;
    const html = '<p><a href="https://example.com/orders/4711">Follow the parcel</a></p>';
    const clicked = await openEmail(t, fixture, 'clicked@example.com', 'clicked', { html });
    await timeline(clicked).getByText('https://example.com/orders/4711').waitFor();

    const bounced = await openEmail(t, fixture, 'bounced+mailbox_full@example.com', 'bounced');
    const entry = timeline(bounced).locator('li', { hasText: 'Bounced' });
    await entry.getByRole('link', { name: 'see the response above' }).click();
    await bounced
      .locator('#response:target code')
      .filter({ hasText: /\d{3}|mailbox/i })
      .waitFor();

    const [first, second] = [inDays(2), inDays(3)];
    const id = await sendMail(dev, { scheduled_at: first });
    await call(dev, 'PATCH', `/v1/emails/${id}`, { scheduled_at: second });
    const page = await openTab(t, browser);
    await signIn(page, dev, `/emails/${id}`);
    const times = timeline(page).locator('li', { hasText: 'Rescheduled' }).locator('p').last().locator('time');
    await times.last().waitFor();
    const shown = await Promise.all((await times.all()).map((each) => each.getAttribute('datetime')));
    assert.deepEqual(
      shown.map((each) => Date.parse(String(each))),
      [first, second].map(Date.parse),
    );
  },

  async 'a batch of scheduled emails is scheduled'(t, { dev, browser }) {
    const emails = [1, 2].map((n) => mail(dev, { subject: `Later ${n}`, scheduled_at: inDays(2) }));
    const { id } = await call<{ id: string }>(dev, 'POST', '/v1/emails/batch', { emails });
    const page = await openTab(t, browser);
    await signIn(page, dev, '/batches');
    const row = page.getByRole('row').filter({ hasText: id });
    assert.equal(await row.locator('.badge').first().innerText(), 'scheduled');
    await page.goto(`${dev.dashboard_url}/batches/${id}`);
    assert.equal(await page.locator('.facts .badge').first().innerText(), 'scheduled');
  },

  async 'a part of an address in the search of suppressions lists nothing and says what is expected'(
    t,
    { dev, browser },
  ) {
    await call(dev, 'POST', '/v1/suppressions', { emails: ['dorothy@example.com', 'ada@example.com'] });
    const page = await openTab(t, browser);
    await signIn(page, dev, '/suppressions');
    await page.getByRole('row').filter({ hasText: 'dorothy@example.com' }).waitFor();
    const search = page.getByRole('searchbox', { name: 'Address' });
    await search.fill('dorothy');
    await search.press('Enter');
    await search.and(page.locator('[aria-invalid=true]')).waitFor();
    assert.equal(await page.getByRole('row').count(), 0);
  },

  async 'the address of the API leads to the dashboard, which has an icon'(t, { dev, browser }) {
    const page = await openTab(t, browser);
    await page.goto(dev.base_url);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    const icon = await page.locator('link[rel=icon]').getAttribute('href');
    const answer = await page.request.get(new URL(icon ?? '', page.url()).href);
    assert.match(answer.headers()['content-type'] ?? '', /^image\//);
  },

  async 'a page that is not allowed or missing keeps navigation and account menu'(t, { dev, browser, pool }) {
    const user = { email: 'viewer@example.com', password: 'a long password', role: 'viewer' } as const;
    await createUser(pool, dev.organization_id, user);
    const page = await openTab(t, browser);
    await signIn(page, { ...dev, dashboard_email: user.email, dashboard_password: user.password });
    await page.goto(`${dev.dashboard_url}/keys/new`);
    await page.getByText('needs the role owner').waitFor();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    await page.getByText('Account:').waitFor({ state: 'attached' });
    // The console of a tab by `openTab` must not have the status 404.
    const missing = await page.context().newPage();
    await missing.goto(`${dev.dashboard_url}/emails/x`);
    await missing.getByRole('heading', { level: 1, name: /not found/i }).waitFor();
    await missing.getByRole('navigation', { name: 'Main' }).waitFor();
    await missing.getByText('Account:').waitFor({ state: 'attached' });
  },
};

/** Sends an email, waits until it has a status, and opens its page. */
async function openEmail(
  t: TestContext,
  { dev, browser }: Pick<Fixture, 'dev' | 'browser'>,
  to: string,
  status: string,
  fields: Record<string, unknown> = {},
): Promise<Page> {
  const id = await sendMail(dev, { to, ...fields });
  const isThere = async () => (await call(dev, 'GET', `/v1/emails/${id}`))['status'] === status;
  await eventually(`${to} is ${status}`, isThere, 40_000);
  const page = await openTab(t, browser);
  await signIn(page, dev, `/emails/${id}`);
  assert.equal(await page.locator('.facts .badge').first().innerText(), status);
  return page;
}

function timeline(page: Page) {
  return page.locator('ol.timeline');
}
