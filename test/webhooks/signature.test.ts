import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { newSecret, formatSecret, signedHeaders } from '../../src/webhooks/signature.ts';

const BODY = JSON.stringify({ id: 'evt_1', type: 'email.sent', data: { subject: 'Grüße 👋' } });
const now = Date.now();

/** What the library of Standard Webhooks finds, with our names of the headers or its own. */
function verify(secret: Buffer, headers: Record<string, string>, body = BODY, prefix = 'webhook'): unknown {
  const given = ['id', 'timestamp', 'signature'].map((name) => [`webhook-${name}`, headers[`${prefix}-${name}`]]);
  return new Webhook(formatSecret(secret)).verify(body, Object.fromEntries(given) as Record<string, string>);
}

test('a secret is whsec_ and base64 of 32 random bytes', () => {
  const secret = newSecret();
  assert.match(formatSecret(secret), /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual(Buffer.from(formatSecret(secret).slice('whsec_'.length), 'base64'), secret);
  assert.notDeepEqual(newSecret(), secret);
});

test('the standardwebhooks package verifies it, under both sets of names', () => {
  const secret = newSecret();
  const headers = signedHeaders('evt_1', now, BODY, [secret]);
  assert.deepEqual(verify(secret, headers), JSON.parse(BODY));
  assert.deepEqual(verify(secret, headers, BODY, 'service'), JSON.parse(BODY));
  assert.equal(headers['webhook-timestamp'], String(Math.floor(now / 1_000)));
});

test('while a secret is rotated, both sign', () => {
  const [fresh, old, other] = [newSecret(), newSecret(), newSecret()];
  const headers = signedHeaders('evt_1', now, BODY, [fresh, old]);
  assert.match(headers['webhook-signature'] ?? '', /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  for (const secret of [fresh, old]) assert.deepEqual(verify(secret, headers), JSON.parse(BODY));
  assert.throws(() => verify(other, headers));
});

test('another body, id or time is refused, and so is a signature of long ago', () => {
  const secret = newSecret();
  const headers = signedHeaders('evt_1', now, BODY, [secret]);
  assert.throws(() => verify(secret, headers, BODY.replace('sent', 'open')));
  assert.throws(() => verify(secret, { ...headers, 'webhook-id': 'evt_2' }));
  assert.throws(() => verify(secret, { ...headers, 'webhook-timestamp': String(Math.floor(now / 1_000) + 1) }));
  assert.throws(() => verify(secret, signedHeaders('evt_1', now - 301_000, BODY, [secret])));
});
