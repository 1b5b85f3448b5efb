import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from '../../client/index.ts';
import { newSecret, showSecret, signedHeaders } from '../../src/webhooks/signature.ts';

const BODY = JSON.stringify({
  id: 'evt_1',
  type: 'email.sent',
  created_at: '2026-03-01T09:30:00.000Z',
  data: { emailId: 'em_1', from: 'a@example.com', subject: 'Grüße 👋', status: 'sent' },
});
const now = Date.now();
const [fresh, old, other] = [newSecret(), newSecret(), newSecret()];
const [secret, oldSecret, otherSecret] = [fresh, old, other].map(showSecret) as [string, string, string];
const headers = signedHeaders('evt_1', now, BODY, [fresh, old]);

function refused(work: () => unknown, says: RegExp): void {
  assert.throws(work, (error: unknown) => {
    assert.ok(error instanceof WebhookVerificationError, String(error));
    assert.match(error.message, says);
    return true;
  });
}

describe('verifyWebhook', () => {
  it('gives the event of a delivery of ours, from text and from bytes', () => {
    for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)]) {
      assert.deepEqual(verifyWebhook(body, headers, secret), JSON.parse(BODY));
    }
  });

  it('takes headers as Fetch and Node have them, in any case, and under either name', () => {
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    const only = (prefix: string) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));
    for (const given of [new Headers(headers), upper, only('webhook-'), only('service-')]) {
      assert.equal(verifyWebhook(BODY, given, secret).type, 'email.sent');
    }
  });

  it('takes what either secret signed while one takes the place of another, and any of several secrets', () => {
    for (const each of [secret, oldSecret, [otherSecret, oldSecret]]) verifyWebhook(BODY, headers, each);
    const alone = signedHeaders('evt_1', now, BODY, [old]);
    verifyWebhook(BODY, alone, [secret, oldSecret]);
    refused(() => verifyWebhook(BODY, alone, secret), /signature is not that of the secret/);
    refused(() => verifyWebhook(BODY, alone, []), /signature is not that of the secret/);
  });

  it('takes what the package of Standard Webhooks signs', () => {
    const at = new Date();
    const signature = new Webhook(secret).sign('evt_2', at, BODY);
    const given = { 'webhook-id': 'evt_2', 'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)) };
    verifyWebhook(BODY, { ...given, 'webhook-signature': signature }, secret);
  });

  it('refuses another secret, body, id or time', () => {
    refused(() => verifyWebhook(BODY, headers, otherSecret), /signature/);
    refused(() => verifyWebhook(`${BODY} `, headers, secret), /signature/);
    const second = String(Math.floor(now / 1_000) - 1);
    for (const changed of [
      { 'webhook-id': 'evt_2' },
      { 'webhook-timestamp': second },
      { 'webhook-signature': 'v1,' },
    ]) {
      refused(() => verifyWebhook(BODY, { ...headers, ...changed }, secret), /signature/);
    }
    const renamed = headers['webhook-signature']?.replaceAll('v1,', 'v2,');
    refused(() => verifyWebhook(BODY, { ...headers, 'webhook-signature': renamed }, secret), /signature/);
  });

  it('refuses what is too old or from a clock too far ahead, as far as it is told', () => {
    for (const age of [299_000, -299_000]) verifyWebhook(BODY, headers, secret, { now: now + age });
    refused(() => verifyWebhook(BODY, headers, secret, { now: now + 302_000 }), /too old/);
    refused(() => verifyWebhook(BODY, headers, secret, { now: now - 302_000 }), /in the future/);
    verifyWebhook(BODY, headers, secret, { now: now + 302_000, tolerance: 600 });
    refused(() => verifyWebhook(BODY, headers, secret, { now: now + 12_000, tolerance: 10 }), /too old/);
    refused(() => verifyWebhook(BODY, { ...headers, 'webhook-timestamp': 'x' }, secret), /not a number/);
  });

  it('says which header is missing, and does not mix the two names', () => {
    refused(() => verifyWebhook(BODY, {}, secret), /is missing/);
    const half = { 'webhook-id': 'evt_1', 'webhook-timestamp': headers['webhook-timestamp'], ...{ 'service-id': 'x' } };
    refused(() => verifyWebhook(BODY, half, secret), /is missing/);
    refused(
      () => verifyWebhook(BODY, { ...headers, 'webhook-id': ['a', 'b'], 'service-id': [] }, secret),
      /is missing/,
    );
  });

  it('takes no empty or cut secret, with which anybody could sign', () => {
    for (const each of ['', 'whsec_', 'whsec_abcd']) assert.throws(() => verifyWebhook(BODY, headers, each), TypeError);
  });

  it('tells the fields of an event by its type', () => {
    const told = (event: WebhookEvent): unknown => {
      // eslint-disable-next-line @typescript-eslint/switch-exhaustiveness-check -- a caller looks at those that he wants
      switch (event.type) {
        case 'email.bounced':
          return event.data.bounceReason;
        case 'chatapp.failed':
          return event.data.errorCode;
        case 'batch.completed':
          return event.data.counts.delivered;
        case 'email.sent':
          // @ts-expect-error an email has no messageId
          return event.data.messageId;
        default:
          return event.id;
      }
    };
    assert.equal(told(verifyWebhook(BODY, headers, secret)), undefined);
  });
});
