import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { DevFile } from '../../src/main/dev-file.ts';
import { recordingServer } from '../providers/servers.ts';
import { eventually } from '../support/eventually.ts';
import { call } from '../support/start.ts';

/** The requests to a webhook receiver. */
export interface Hook {
  readonly url: string;
  readonly posts: { readonly id: string; readonly body: string }[];
  /** Its answer to further requests; 200 at first. */
  status: number;
}

/** A webhook receiver. It ends with the test. */
export async function listenToHooks(t: TestContext): Promise<Hook> {
  const posts: Hook['posts'] = [];
  const { url } = await recordingServer(t, ({ headers, body }) => {
    posts.push({ id: String(headers['webhook-id']), body: body.toString() });
    return { status: hook.status, body: hook.status < 300 ? 'thanks' : 'the order system is being updated' };
  });
  const hook: Hook = { url: `${url}/hooks`, posts, status: 200 };
  return hook;
}

/** A valid email of the organization of `npm start`. */
export function mail({ domain }: Pick<DevFile, 'domain'>, fields: Record<string, unknown> = {}) {
  return {
    from: `Northwind Books <hello@${domain}>`,
    to: 'ada@example.com',
    subject: 'Your order 4711 is on its way',
    text: 'Hello Ada,\n\nyour books left our store this morning.\n\nNorthwind Books',
    ...fields,
  };
}

/** Sends one. @returns its id */
export async function sendMail(dev: DevFile, fields: Record<string, unknown> = {}): Promise<string> {
  return (await call<{ id: string }>(dev, 'POST', '/v1/emails', mail(dev, fields))).id;
}

const HTML = `<div style="font-family: sans-serif; max-width: 32rem; margin: 2rem auto">
<h1 style="color: #0b6475">On its way</h1><p>Hello Ada,</p><p>your books left our store this morning.</p>
<p><a href="https://example.com/orders/4711">Follow the parcel</a></p></div>`;

export const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const receipt = [{ name: 'kind', value: 'receipt' }];

/** Emails with every outcome, by the simulator's addresses. */
const EMAILS: readonly Record<string, unknown>[] = [
  {
    to: 'clicked+grace@example.com',
    subject: 'Welcome to Northwind Books',
    tags: [{ name: 'kind', value: 'welcome' }],
  },
  { to: 'opened+alan@example.com', subject: 'Your receipt for order 4698', tags: receipt },
  { to: 'bounced+mailbox_full@example.com', subject: 'Your receipt for order 4700', tags: receipt },
  { to: 'bounced+mailbox_not_found@example.com', subject: 'Your order 4701 is on its way' },
  { to: 'complained@example.net', subject: 'New in June', marketing: true, text: 'Hi. {{{unsubscribe_url}}}' },
  { to: 'fail-once@example.org', subject: 'Reset your password' },
  {
    to: 'bounced+mailbox_not_found@dorothy2274.mail.example.com',
    subject:
      'Re: Fwd: Your order SO-2026-00043129 has changed: please confirm the new delivery address before Friday, 18:00',
    tags: [
      { name: 'campaign', value: 'black-friday-early-access' },
      { name: 'segment', value: 'returning-customers-northern-europe' },
    ],
  },
  {
    to: 'a.rather.long.name+orders.and.receipts.archive@subsidiary.of.a.company.example.org',
    subject: '🎉 ご注文ありがとうございます',
    tags: [{ name: 'kind', value: 'receipt' }],
  },
  { to: 'clicked+noam@example.com', subject: 'ההזמנה שלך בדרך' },
  { to: 'slow@example.com', subject: '<b>50 % off</b> & "more"', marketing: true, text: '{{{unsubscribe_url}}}' },
  { to: 'edsger@example.com', subject: 'Your receipt for order 4702', tags: receipt },
  { to: 'barbara@example.com', subject: 'Your books are waiting', scheduled_at: inDays(2) },
  {
    to: 'donald@example.com',
    subject: 'Happy birthday',
    scheduled_at: inDays(9),
    tags: [{ name: 'kind', value: 'greeting' }],
  },
];

/**
 * Fills the organization of `npm start` as a small shop would: emails with every outcome, a batch, chat-app messages, a webhook
 * endpoint that works and one that fails, suppressions, a pending domain, keys. The latest email has every field.
 */
export async function fillOrganization(t: TestContext, dev: DevFile): Promise<void> {
  const [works, fails] = [await listenToHooks(t), await listenToHooks(t)];
  fails.status = 503;
  await call(dev, 'POST', '/v1/webhooks', {
    url: fails.url,
    events: ['email.bounced'],
    description: 'Old order system',
  });
  await call(dev, 'POST', '/v1/webhooks', { url: works.url, description: 'Order system' });
  await call(dev, 'POST', '/v1/domains', { name: 'news.northwind.example' });
  await call(dev, 'POST', '/v1/keys', { preset: 'sending_access', name: 'Shop, production' });
  await call(dev, 'POST', '/v1/keys', { preset: 'read_only', name: 'Reports', allowed_ips: ['203.0.113.0/24'] });
  await call(dev, 'POST', '/v1/suppressions', { emails: ['blocked@example.com', 'gone@example.net'] });
  await call(dev, 'POST', '/v1/suppressions', { emails: ['unsubscribed@example.org'] });
  for (const [to, text] of [
    ['+14165550123', 'Your parcel arrives today between 10 and 12.'],
    ['+14165550001', 'Your parcel is waiting for you.'],
    ['+14165550002', 'Thank you for your order.'],
  ]) {
    await call(dev, 'POST', '/v1/chatapp', { to, text });
  }
  await call(dev, 'POST', '/v1/sms', { to: '+14165550105', text: 'Your code is 493 817.' });
  for (const fields of EMAILS) await sendMail(dev, fields);
  const names = ['tim', 'radia', 'niklaus', 'frances', 'john', 'adele', 'leslie', 'shafi', 'blocked', 'ivan'];
  await call(dev, 'POST', '/v1/emails/batch', {
    emails: names.map((name, n) =>
      mail(dev, { to: `${name}@example.com`, subject: `June at Northwind, no. ${n + 1}` }),
    ),
  });
  const latest = await sendMail(dev, {
    to: ['Ada Lovelace <ada@example.com>', 'opened+charles@example.com'],
    cc: 'office@example.com',
    html: HTML,
    tags: [...receipt, { name: 'customer', value: 'c1815' }],
    attachments: [{ filename: 'invoice-4711.txt', content: Buffer.from('1 book').toString('base64') }],
  });
  await eventually(
    'the latest email is delivered',
    async () => {
      const { status } = await call(dev, 'GET', `/v1/emails/${latest}`);
      return status === 'opened' || status === 'delivered';
    },
    30_000,
  );
  await eventually('the endpoint is notified', () => works.posts.some(({ body }) => body.includes(latest)), 30_000);
  await eventually('the other endpoint is notified', () => fails.posts.length > 0, 30_000);
}

/** The link in the only email to an address, once the simulator has it. */
export async function linkIn({ inbox_url }: DevFile, to: string): Promise<string | undefined> {
  const answer = await fetch(`${inbox_url}/messages?to=${encodeURIComponent(to)}`);
  const messages = (await answer.json()) as { text: string | null }[];
  assert.ok(messages.length <= 1, 'one email');
  return /http\S+/.exec(messages[0]?.text ?? '')?.[0];
}
