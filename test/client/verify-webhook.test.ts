import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook } from '../../client/index.ts';
import { newSecret, formatSecret, signedHeaders } from '../../src/webhooks/signature.ts';

const BODY = JSON.stringify({
  id: 'evt_1',
  type: 'email.sent',
  created_at: '2026-03-01T09:30:00.000Z',
  data: { emailId: 'em_1', from: 'a@example.com', subject: 'Grüße 👋', status: 'sent' },
});
const now = Date.now();
const [fresh, old, other] = [newSecret(), newSecret(), newSecret()];
const [secret, oldSecret, otherSecret] = [fresh, old, other].map(formatSecret) as [string, string, string];
const headers = signedHeaders('evt_1', now, BODY, [fresh, old]);

function assertRefused(work: () => unknown, message: RegExp): void {
  assert.throws(work, { name: 'WebhookVerificationError', message });
}

describe('verifyWebhook', () => {
  it('returns the event, from text and from bytes', () => {
    for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)]) {
      assert.deepEqual(verifyWebhook(body, headers, secret), JSON.parse(BODY));
    }
  });

  it('accepts Fetch and Node headers, in any case, with either prefix', () => {
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    const only = (prefix: string) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));
    for (const given of [new Headers(headers), upper, only('webhook-'), only('service-')]) {
      assert.equal(verifyWebhook(BODY, given, secret).type, 'email.sent');
    }
  });

  it('accepts headers of another implementation of Fetch, and lists of one value', () => {
    const foreign = { get: (name: string) => headers[name.toLowerCase()] ?? null };
    const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    for (const given of [foreign, lists]) assert.equal(verifyWebhook(BODY, given, secret).type, 'email.sent');
    assertRefused(() => verifyWebhook(BODY, { get: () => null }, secret), /is missing/);
  });

  it('accepts the old and the new secret during a rotation', () => {
    for (const each of [secret, oldSecret, [otherSecret, oldSecret]]) verifyWebhook(BODY, headers, each);
    const alone = signedHeaders('evt_1', now, BODY, [old]);
    verifyWebhook(BODY, alone, [secret, oldSecret]);
    assertRefused(() => verifyWebhook(BODY, alone, secret), /signature is not that of the secret/);
    assertRefused(() => verifyWebhook(BODY, alone, []), /signature is not that of the secret/);
  });

  it('accepts signatures of the standardwebhooks package', () => {
    const at = new Date();
    const signature = new Webhook(secret).sign('evt_2', at, BODY);
    const given = { 'webhook-id': 'evt_2', 'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)) };
    verifyWebhook(BODY, { ...given, 'webhook-signature': signature }, secret);
  });

  it('refuses another secret, body, id or time', () => {
    assertRefused(() => verifyWebhook(BODY, headers, otherSecret), /signature/);
    assertRefused(() => verifyWebhook(`${BODY} `, headers, secret), /signature/);
    const second = String(Math.floor(now / 1_000) - 1);
    const renamed = headers['webhook-signature']?.replaceAll('v1,', 'v2,');
    for (const [name, value] of [
      ['webhook-id', 'evt_2'],
      ['webhook-timestamp', second],
      ['webhook-signature', 'v1,'],
      ['webhook-signature', renamed],
    ] as const) {
      assertRefused(() => verifyWebhook(BODY, { ...headers, [name]: value }, secret), /signature/);
    }
  });

  it('refuses a timestamp that is too old or in the future', () => {
    for (const age of [299_000, -299_000]) verifyWebhook(BODY, headers, secret, { now: now + age });
    assertRefused(() => verifyWebhook(BODY, headers, secret, { now: now + 302_000 }), /too old/);
    assertRefused(() => verifyWebhook(BODY, headers, secret, { now: now - 302_000 }), /in the future/);
    verifyWebhook(BODY, headers, secret, { now: now + 302_000, tolerance: 600 });
    assertRefused(() => verifyWebhook(BODY, headers, secret, { now: now + 12_000, tolerance: 10 }), /too old/);
    assertRefused(() => verifyWebhook(BODY, { ...headers, 'webhook-timestamp': 'x' }, secret), /not a number/);
  });

  it('names a missing header and does not mix prefixes', () => {
    assertRefused(() => verifyWebhook(BODY, {}, secret), /is missing/);
    const half = { 'webhook-id': 'evt_1', 'webhook-timestamp': headers['webhook-timestamp'], ...{ 'service-id': 'x' } };
    assertRefused(() => verifyWebhook(BODY, half, secret), /is missing/);
    assertRefused(
      () => verifyWebhook(BODY, { ...headers, 'webhook-id': ['a', 'b'], 'service-id': [] }, secret),
      /is missing/,
    );
  });

  it('refuses an empty or short secret', () => {
    for (const each of ['', 'whsec_', 'whsec_abcd']) assert.throws(() => verifyWebhook(BODY, headers, each), TypeError);
  });
});
