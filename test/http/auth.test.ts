import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, inFuture, useService } from './service.ts';
import { sendBytes } from './socket.ts';

/** Presets are tested in scopes.test.ts, revocation in revocation.test.ts, the form of a key in test/accounts. */
const service = await useService();
const ours = await service.organization();
const id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });

const get = (authorization?: string) =>
  service.call('GET', `/v1/emails/${id}`, { headers: authorization === undefined ? {} : { authorization } });

describe('401 unauthorized for a missing, malformed or invalid key', () => {
  const forms: Readonly<Record<string, (key: string) => string | undefined>> = {
    'no header': () => undefined,
    'an empty header': () => '',
    'the scheme alone': () => 'Bearer',
    'the key alone': (key) => key,
    'another scheme': (key) => `Basic ${key}`,
    'the key as a Basic user': (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
    'the key twice': (key) => `Bearer ${key} ${key}`,
    quotes: (key) => `Bearer "${key}"`,
    'another last letter': (key) => `Bearer ${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`,
    'another id': (key) => `Bearer ${key.replace(/_[0-9a-z]{26}_/, `_${'0'.repeat(26)}_`)}`,
    '10 kB of spaces': (key) => `Bearer ${' '.repeat(10_000)}x ${key}`,
  };
  let first: string | undefined;
  for (const [name, form] of Object.entries(forms)) {
    it(`${name}, with the same message`, async () => {
      const answer = await get(form(ours.key));
      assertRefused(answer, 401, 'unauthorized');
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
      const message = answer.text.replace(/req_[0-9a-z]+/, '');
      assert.equal(message, (first ??= message));
    });
  }

  it('two Authorization headers, of which one has a key', async () => {
    const request = `GET /v1/emails/${id} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n`;
    const answer = await sendBytes(service.port, `${request}Authorization: Bearer ${ours.key}\r\n\r\n`);
    assertRefused(answer, 401, 'unauthorized');
  });

  it('a key in the query, in another header or in a cookie', async () => {
    const headers = { 'x-api-key': ours.key, cookie: `api_key=${ours.key}` };
    const answer = await service.call('GET', `/v1/emails/${id}?api_key=${ours.key}`, { headers });
    assertRefused(answer, 401, 'unauthorized');
  });
});

describe('200', () => {
  it('for the scheme in any case and with more spaces (RFC 9110 §11.1)', async () => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer   ']) {
      assert.equal((await get(scheme + ours.key)).status, 200);
    }
    assert.equal((await get(`Bearer ${ours.key}  `)).status, 200);
  });

  for (const path of ['/healthz', '/readyz', '/openapi.json']) {
    it(`for ${path} without a key and with an invalid one`, async () => {
      assert.equal((await service.call('GET', path)).status, 200);
      assert.equal((await service.call('GET', path, { key: 'x' })).status, 200);
    });
  }
});

describe('a key', () => {
  it('with sending_access cannot find out which emails exist', async () => {
    const key = await ours.addKey('sending_access');
    for (const each of [id, `em_${'0'.repeat(26)}`]) {
      assert.equal((await service.call('HEAD', `/v1/emails/${each}`, { key })).status, 403);
    }
  });

  it('for certain domains sends from these only', async () => {
    await ours.addDomain('limited.example');
    await ours.addDomain('second.example');
    const key = await ours.addKey('sending_access', ['limited.example', 'SECOND.example']);
    const send = (from: string) => service.call('POST', '/v1/emails', { key, json: ours.mail({ from }) });
    assert.equal((await send('a@limited.example')).status, 202);
    assert.equal((await send('a@second.example')).status, 202);
    const other = await send(`a@${ours.domain}`);
    assertRefused(other, 403, 'insufficient_scope', 'from', 'this API key may not send from');
    assertRefused(await send('a@mail.limited.example'), 403, 'domain_not_found', 'from');
  });
});
