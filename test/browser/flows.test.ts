import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Locator, Page } from 'playwright-core';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createUser } from '../../src/accounts/users.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';
import { type Account, DESKTOP, enterPassword, openBrowser, openTab, publishRecords, signIn } from './browser.ts';
import { linkIn, listenToHooks, mail, sendMail } from './content.ts';

/**
 * The clicks that tasks of a user take in the dashboard of `npm start`. Each task begins at the overview after sign-in and takes no
 * more clicks than in the best of Resend, Postmark, Svix and useSend. A click and an Enter count as one; typing into a field does
 * not count, nor does pointing at the field.
 */
test('flows take no more clicks than in comparable services', async (t) => {
  const dns = await startDnsServer();
  t.after(() => dns.close());
  const dev = await (await startSendwright(t, await emptyHome(), { DNS_SERVERS: dns.address })).dev();
  const browser = await openBrowser(t);
  const pool = makePool(dev.database_url, 'test', 2, () => undefined);
  t.after(() => pool.end());
  for (const [name, maxClicks] of Object.entries(MAX_CLICKS) as [Flow, number][]) {
    await t.test(`${name}: at most ${maxClicks} clicks`, async (inner) => {
      const user = countClicks(await openTab(inner, browser, { timezoneId: 'UTC' }));
      await FLOWS[name](user, { t: inner, dev, dns, browser, pool });
      inner.diagnostic(`${name}: ${user.clicks()} clicks, at most ${maxClicks}`);
      assert.ok(user.clicks() > 0 && user.clicks() <= maxClicks, `${user.clicks()} clicks, at most ${maxClicks}`);
    });
  }
});

type Flow = keyof typeof MAX_CLICKS;

/** The clicks that are expected of the best of those services. Most come from a review; none was counted in them. */
const MAX_CLICKS = {
  // Resend: API keys, Create API key, Add.
  'create the first key': 3,
  // Resend's onboarding: Send email.
  'send the first email from a verified domain': 1,
  // Resend: Domains, Add domain, Add, Verify; then Send email of the onboarding.
  'send the first email of an empty organization': 5,
  // Resend: Domains, Add domain, Add, Verify; and one copy for each of three records.
  'verify a domain': 7,
  // Resend and Postmark: the list of bounced emails, the email.
  'find out why an email bounced': 2,
  // Resend, Postmark and useSend: type, Enter.
  'find an email by its recipient': 1,
  'find an email by its subject': 1,
  'find an email by its id': 1,
  // Resend: the menu of dates, the day.
  'find an email by its day': 2,
  // Resend: the email, and two clicks on its page.
  'resend an email': 3,
  // Svix: four clicks to an endpoint with its deliveries, and one to send a test event.
  'add a webhook endpoint and test it': 5,
  // Resend: the team, Invite, Send.
  'invite a member': 3,
  // Postmark: the suppressions, Add, Save.
  'suppress an address': 3,
  // Postmark: the email, and the two clicks of the form.
  'suppress the recipient of an email': 3,
  // Postmark: the broadcasts, the broadcast.
  'follow the progress of a batch': 2,
  // useSend: Emails, Export. The same is expected of a batch, after its page was opened, and of the audit log.
  'export emails': 2,
  'export a batch': 3,
  'export the audit log': 2,
  // Resend: Forgot your password, Send; and, behind the link in the email, Save.
  'replace a lost password': 3,
};

interface Fixture {
  readonly t: TestContext;
  readonly dev: DevFile;
  /** The name server of the domains. */
  readonly dns: DnsServer;
  readonly browser: Browser;
  readonly pool: Pool;
}

const FLOWS: Readonly<Record<Flow, (user: User, fixture: Fixture) => Promise<void>>> = {
  async 'create the first key'(user, { dev }) {
    await signIn(user.page, dev);
    await user.open('API keys');
    await user.link('Create API key');
    await user.button('Create API key');
    const key = (await user.page.locator('.copy code').first().textContent()) ?? '';
    const command = (await user.page.locator('.command code').textContent()) ?? '';
    assert.ok(key !== '' && command.includes(key), 'a request to try, with the key in it');
  },

  async 'send the first email from a verified domain'(user, { dev, pool }) {
    const account = await addOrganization(pool, dev, 'ready.example');
    await registerDomainForOperator(pool, account.organization_id, 'mail.ready.example', true);
    await signIn(user.page, account);
    await user.button(`Send test email to ${account.dashboard_email}`);
    await user.page.locator('#live .badge', { hasText: 'delivered' }).first().waitFor();
  },

  async 'send the first email of an empty organization'(user, { dev, dns, pool }) {
    const account = await addOrganization(pool, dev, 'empty.example');
    await signIn(user.page, account);
    await user.link('Verify a domain');
    await addAndCheckDomain(user, dns, 'mail.empty.example');
    await user.button(`Send test email to ${account.dashboard_email}`);
    await user.page.getByRole('status').filter({ hasText: 'accepted' }).waitFor();
    await user.page.goto(dev.dashboard_url);
    // The organization was created with a key.
    await user.page.getByRole('heading', { name: 'First steps: 3 of 5 done' }).waitFor();
  },

  async 'verify a domain'(user, { dev, dns }) {
    await signIn(user.page, dev);
    await user.open('Domains');
    await addAndCheckDomain(user, dns, 'mail.clicks.example', async () => {
      const box = await user.page.locator('.records').boundingBox();
      assert.ok((box?.height ?? Infinity) <= DESKTOP.height, 'the records fit one screen');
      await user.click(user.page.getByText('All records as a zone file'));
      const zone = await user.download('Download zone file');
      for (const name of await user.page.locator('.records th .copy code').allTextContents())
        assert.ok(zone.includes(name), name);
    });
  },

  async 'find out why an email bounced'(user, { dev }) {
    const { page } = user;
    const address = 'bounced+mailbox_not_found@example.com';
    await sendMail(dev, { to: address, subject: 'Your order 4701' });
    await signIn(page, dev);
    const bounced = page.getByRole('link', { name: /bounced: show them/ });
    await eventually('the overview counts the bounce', async () => {
      await page.reload();
      return (await bounced.count()) > 0;
    });
    await user.click(bounced);
    await user.link('Your order 4701');
    const remedy = page.locator('.remedy');
    await remedy.getByText('mailbox not found means: ').waitFor();
    await remedy.getByText('What to do: ').waitFor();
    await remedy.getByText('has been on your suppression list since').waitFor();
    const target = await remedy.getByRole('link', { name: 'Entry on the suppression list' }).getAttribute('href');
    assert.equal(target, `/dashboard/suppressions?email=${encodeURIComponent(address)}`);
  },

  async 'find an email by its recipient'(user, { dev }) {
    const id = await sendMail(dev, { to: 'grace@recipient.example' });
    await sendMail(dev, { subject: 'To another recipient' });
    await search(user, dev, 'grace@recipient.example');
    assert.deepEqual(await listedEmails(user.page), [id]);
  },

  async 'find an email by its subject'(user, { dev }) {
    const id = await sendMail(dev, { subject: 'The minutes of Thursday' });
    await search(user, dev, 'minutes');
    assert.deepEqual(await listedEmails(user.page), [id]);
  },

  async 'find an email by its id'(user, { dev }) {
    const id = await sendMail(dev);
    await search(user, dev, id);
    assert.equal(new URL(user.page.url()).pathname, `/dashboard/emails/${id}`);
  },

  async 'find an email by its day'(user, { dev }) {
    const id = await sendMail(dev);
    const { created_at: at } = await call<{ created_at: string }>(dev, 'GET', `/v1/emails/${id}`);
    const nextDay = new Date(Date.parse(at) + 86_400_000).toISOString();
    await signIn(user.page, dev);
    await user.open('Emails');
    await user.page.getByLabel('Since (UTC)').fill(at.slice(0, 10));
    await user.enter(user.page.getByLabel('Before (UTC)'), nextDay.slice(0, 10));
    await user.page.waitForURL(/created_after=.*created_before=/);
    assert.ok((await listedEmails(user.page)).includes(id));
  },

  async 'resend an email'(user, { dev }) {
    const { page } = user;
    const id = await sendMail(dev, { subject: 'Once more, please' });
    await signIn(page, dev);
    await user.link('Once more, please');
    await user.button('Resend…');
    await user.click(page.getByRole('dialog').getByRole('button', { name: 'Resend' }));
    await page.getByRole('status').filter({ hasText: 'Email resent' }).waitFor();
    const again = new URL(page.url()).pathname;
    await page.locator(`.facts a[href$="/emails/${id}"]`).waitFor();
    await page.goto(`${dev.dashboard_url}/emails/${id}`);
    await page.locator(`.facts a[href="${again}"]`).waitFor();
  },

  async 'add a webhook endpoint and test it'(user, { t, dev }) {
    const hook = await listenToHooks(t);
    await signIn(user.page, dev);
    await user.open('Webhooks');
    await user.link('Add endpoint');
    await user.page.getByLabel('URL').fill(hook.url);
    await user.button('Add endpoint');
    await user.link('Go to the endpoint');
    await user.page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    await user.button('Send test event');
    await user.page.locator('#progress').getByRole('cell', { name: '200' }).waitFor();
  },

  async 'invite a member'(user, { dev }) {
    const email = 'invited@example.com';
    await signIn(user.page, dev);
    await user.open('Members');
    await user.page.getByLabel('Email').fill(email);
    await user.button('Invite');
    await user.page.getByText(`The invitation was emailed to ${email}.`).waitFor();
    const link = await eventually('the invitation arrives', () => linkIn(dev, email));
    assert.match(link, /\/invitations\//);
  },

  async 'suppress an address'(user, { dev }) {
    await signIn(user.page, dev);
    await user.open('Suppressions');
    await user.link('Add addresses');
    await user.page.getByLabel('Addresses').fill('left@example.com');
    await user.button('Add addresses');
    await user.page.getByRole('rowheader', { name: 'left@example.com' }).waitFor();
  },

  async 'suppress the recipient of an email'(user, { dev }) {
    await sendMail(dev, { to: '"Moved" <moved+away@example.com>', subject: 'To an address that I got wrong' });
    await signIn(user.page, dev);
    await user.link('To an address that I got wrong');
    await user.link('Suppress moved+away@example.com');
    await user.button('Add addresses');
    await user.page.getByRole('rowheader', { name: 'moved+away@example.com' }).waitFor();
  },

  async 'follow the progress of a batch'(user, { dev }) {
    await openNewBatch(user, dev, 'June at Northwind');
    await user.page.getByRole('progressbar', { name: 'Done: 2 of 2' }).waitFor();
    await user.page.locator('#live .badge', { hasText: 'completed' }).first().waitFor();
  },

  async 'export emails'(user, { dev }) {
    const id = await sendMail(dev);
    await signIn(user.page, dev);
    await user.open('Emails');
    assert.ok((await user.download('Download as CSV')).includes(id));
  },

  async 'export a batch'(user, { dev }) {
    await openNewBatch(user, dev, 'July at Northwind');
    const lines = (await user.download('Download as CSV')).trim().split('\n');
    assert.equal(lines.length, 3, 'a header and two emails');
  },

  async 'export the audit log'(user, { dev }) {
    await signIn(user.page, dev);
    await user.open('Audit log');
    assert.match(await user.download('Download as CSV'), /^\uFEFFat,actor_kind,/);
  },

  async 'replace a lost password'(user, { dev, pool }) {
    const { page } = user;
    const { dashboard_email: email } = await addOrganization(pool, dev, 'lost.example');
    await page.goto(dev.dashboard_url);
    await user.link('Forgot your password?');
    await page.getByLabel('Email').fill(email);
    await user.button('Email me a link');
    await page.goto(await eventually('the email arrives', () => linkIn(dev, email)));
    await page.getByLabel('New password').fill('a new password');
    await user.button('Change the password');
    await page.getByRole('heading', { level: 1, name: 'Password changed' }).waitFor();
    await page.goto(dev.dashboard_url);
    await enterPassword(page, email, 'a new password');
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
  },
};

/** A user who points and types in a page. */
interface User {
  readonly page: Page;
  readonly clicks: () => number;
  readonly click: (target: Locator) => Promise<void>;
  /** Opens a page of the navigation. */
  readonly open: (name: string) => Promise<void>;
  readonly link: (name: string) => Promise<void>;
  readonly button: (name: string) => Promise<void>;
  /** Types into a field and presses Enter. */
  readonly enter: (field: Locator, text: string) => Promise<void>;
  /** Follows a link to a file. @returns its text */
  readonly download: (name: string) => Promise<string>;
}

function countClicks(page: Page): User {
  let clicks = 0;
  const click = async (target: Locator): Promise<void> => {
    clicks++;
    await target.click();
  };
  const link = (name: string) => click(page.getByRole('main').getByRole('link', { name, exact: true }).first());
  return {
    page,
    clicks: () => clicks,
    click,
    open: (name) => click(page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true })),
    link,
    button: (name) => click(page.getByRole('main').getByRole('button', { name, exact: true })),
    async enter(field, text) {
      clicks++;
      await field.fill(text);
      await field.press('Enter');
    },
    async download(name) {
      const [file] = await Promise.all([page.waitForEvent('download'), link(name)]);
      return readFile(await file.path(), 'utf8');
    },
  };
}

/** An organization with an owner. */
async function addOrganization(pool: Pool, dev: DevFile, name: string): Promise<Account & { organization_id: string }> {
  const { id } = await createOrganization(pool, name);
  const [email, password] = [`owner@${name}`, 'a long password'];
  await createUser(pool, id, { email, password });
  return {
    ...{ organization_id: id, dashboard_url: dev.dashboard_url },
    ...{ dashboard_email: email, dashboard_password: password },
  };
}

/** From the list of domains until the domain is verified. @param takeRecords what the user does to enter them at the DNS provider */
async function addAndCheckDomain(user: User, dns: DnsServer, name: string, takeRecords?: () => Promise<void>) {
  const { page } = user;
  await user.link('Add domain');
  await page.getByLabel('Domain').fill(name);
  await user.button('Add domain');
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await takeRecords?.();
  await publishRecords(page, dns);
  // Users need longer to enter records than the 5 s in which a domain is not checked again.
  await sleep(6_000);
  await user.button('Check now');
  await page.locator('.facts .badge', { hasText: 'verified' }).waitFor();
}

/** Searches for emails in the field that every page has. */
async function search(user: User, dev: DevFile, text: string): Promise<void> {
  await signIn(user.page, dev);
  await user.enter(user.page.getByRole('searchbox', { name: 'Search', exact: true }), text);
  await user.page.waitForURL(/\/emails[/?]/);
}

/** The ids of the emails in a list. */
async function listedEmails(page: Page): Promise<string[]> {
  const links = page.locator('[id^="open-em_"]');
  await links.first().waitFor();
  const ids = await Promise.all((await links.all()).map((link) => link.getAttribute('id')));
  return ids.map((id) => (id ?? '').replace('open-', ''));
}

/** Sends a batch of two emails and opens its page. */
async function openNewBatch(user: User, dev: DevFile, subject: string): Promise<void> {
  const emails = ['tim', 'radia'].map((name) => mail(dev, { to: `${name}@example.com`, subject }));
  await call(dev, 'POST', '/v1/emails/batch', { emails });
  await signIn(user.page, dev);
  await user.open('Batches');
  await user.link(subject);
}
