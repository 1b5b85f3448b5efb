import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { DevFile } from '../../src/main/dev-file.ts';
import { eventually } from '../support/eventually.ts';

/** What a customer's server was posted. */
export interface Hook {
  readonly url: string;
  readonly posts: { readonly id: string; readonly body: string }[];
  /** What it answers from now on; 200 at first. */
  status: number;
}

/** A customer's server that takes events. Ends with the test. */
export async function listenToHooks(t: TestContext): Promise<Hook> {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      hook.posts.push({ id: String(request.headers['webhook-id']), body });
      response.writeHead(hook.status).end(hook.status < 300 ? 'thanks' : 'the order system is being updated');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const hook: Hook = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    posts: [],
    status: 200,
  };
  return hook;
}

/** A request to the API with the key of `npm start`, or another one. @throws AssertionError when it is refused */
export async function call<T = Record<string, unknown>>(
  { base_url, api_key }: Pick<DevFile, 'base_url' | 'api_key'>,
  method: string,
  path: string,
  json?: unknown,
): Promise<T> {
  const response = await fetch(base_url + path, {
    method,
    headers: { authorization: `Bearer ${api_key}`, ...(json !== undefined && { 'content-type': 'application/json' }) },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as T;
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

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const receipt = [{ name: 'kind', value: 'receipt' }];

/** Emails of every fate, by what the simulator makes of the address. */
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
 * Fills the organization of `npm start` with what a small shop may have: emails of every fate, a batch, chat messages, a
 * webhook endpoint that works and one that does not, suppressions, a domain that waits for its records, keys. The newest email has all that an email can have.
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
  for (const fields of EMAILS) await sendMail(dev, fields);
  const names = ['tim', 'radia', 'niklaus', 'frances', 'john', 'adele', 'leslie', 'shafi', 'blocked', 'ivan'];
  await call(dev, 'POST', '/v1/emails/batch', {
    emails: names.map((name, n) =>
      mail(dev, { to: `${name}@example.com`, subject: `June at Northwind, no. ${n + 1}` }),
    ),
  });
  const newest = await sendMail(dev, {
    to: ['Ada Lovelace <ada@example.com>', 'opened+charles@example.com'],
    cc: 'office@example.com',
    html: HTML,
    tags: [...receipt, { name: 'customer', value: 'c1815' }],
    attachments: [{ filename: 'invoice-4711.txt', content: Buffer.from('1 book').toString('base64') }],
  });
  await eventually(
    'the newest email is delivered',
    async () => {
      const { status } = await call(dev, 'GET', `/v1/emails/${newest}`);
      return status === 'opened' || status === 'delivered';
    },
    30_000,
  );
  await eventually('the endpoint was told', () => works.posts.some(({ body }) => body.includes(newest)), 30_000);
  await eventually('the other one too', () => fails.posts.length > 0, 30_000);
}
