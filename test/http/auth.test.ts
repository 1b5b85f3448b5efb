import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { endKey } from '../../src/accounts/keys.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { speak } from './socket.ts';

let service: Service;
let ours: Organization;
let id: string;
before(async () => {
  service = await startService();
  ours = await service.organization();
  id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
});
after(() => service.close());

const get = (authorization?: string) =>
  service.call('GET', `/v1/emails/${id}`, { headers: authorization === undefined ? {} : { authorization } });

describe('a missing, malformed, invalid or revoked key gives 401 unauthorized', () => {
  const forms: Readonly<Record<string, (key: string) => string | undefined>> = {
    'no header': () => undefined,
    'an empty header': () => '',
    'the scheme alone': () => 'Bearer',
    'the scheme and a space': () => 'Bearer ',
    'the key alone': (key) => key,
    'another scheme': (key) => `Basic ${key}`,
    'the key as a Basic user': (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
    'no space': (key) => `Bearer${key}`,
    'a comma': (key) => `Bearer, ${key}`,
    'the key twice': (key) => `Bearer ${key} ${key}`,
    quotes: (key) => `Bearer "${key}"`,
    'another word': () => 'Bearer null',
    'less than a key': (key) => `Bearer ${key.slice(0, -1)}`,
    'more than a key': (key) => `Bearer ${key}0`,
    'another last letter': (key) => `Bearer ${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`,
    'another id': (key) => `Bearer ${key.replace(/_[0-9a-z]{26}_/, `_${'0'.repeat(26)}_`)}`,
    'another prefix': (key) => `Bearer ${key.replace('sw_live', 'sw_test')}`,
    'no prefix': (key) => `Bearer ${key.slice('sw_live_'.length)}`,
    capitals: (key) => `Bearer ${key.toUpperCase()}`,
    'no secret': (key) => `Bearer ${key.split('_').slice(0, 3).join('_')}_`,
    'the secret alone': (key) => `Bearer ${key.split('_')[3]}`,
    'its id': (key) => `Bearer key_${key.split('_')[2]}`,
    'a kilobyte': () => `Bearer ${'x'.repeat(1_000)}`,
    '10 kB of spaces': (key) => `Bearer ${' '.repeat(10_000)}x ${key}`,
    'an attack on SQL': () => "Bearer sw_live_' OR 1=1 --",
  };
  let words: string | undefined;
  for (const [what, form] of Object.entries(forms)) {
    it(what, async () => {
      const answer = await get(form(ours.key));
      assertRefused(answer, 401, 'unauthorized');
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
      const message = answer.text.replace(/req_[0-9a-z]+/, '');
      assert.equal(message, (words ??= message), 'in the same words whatever is wrong with it');
    });
  }

  it('the scheme may be written in any case, with more spaces (RFC 9110 §11.1)', async () => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer   ']) {
      assert.equal((await get(scheme + ours.key)).status, 200);
    }
    assert.equal((await get(`Bearer ${ours.key}  `)).status, 200);
  });

  it('of two headers neither may lend the other a key', async () => {
    const lines = (first: string, second: string) =>
      `GET /v1/emails/${id} HTTP/1.1\r\nHost: a\r\nAuthorization: ${first}\r\nAuthorization: ${second}\r\n\r\n`;
    assertRefused(await speak(service.port, lines('Bearer x', `Bearer ${ours.key}`)), 401, 'unauthorized');
  });

  it('a key in another place is none', async () => {
    assertRefused(await service.call('GET', `/v1/emails/${id}?api_key=${ours.key}`), 401, 'unauthorized');
    const headers = { 'x-api-key': ours.key, cookie: `api_key=${ours.key}` };
    assertRefused(await service.call('GET', `/v1/emails/${id}`, { headers }), 401, 'unauthorized');
  });

  it('every path under /v1 asks for it', async () => {
    for (const [method, path] of [
      ['POST', '/v1/emails'],
      ['GET', `/v1/emails/${id}`],
      ['HEAD', `/v1/emails/${id}`],
      ['PATCH', `/v1/emails/${id}`],
      ['POST', `/v1/emails/${id}/cancel`],
      ['PUT', '/v1/emails'],
      ['OPTIONS', '/v1/emails'],
      ['GET', '/v1/nothing'],
    ] as const) {
      assert.equal((await service.call(method, path)).status, 401, `${method} ${path}`);
    }
  });

  it('health and the API description are for everybody, and a bad key does not shut them', async () => {
    for (const path of ['/healthz', '/readyz', '/openapi.json']) {
      assert.equal((await service.call('GET', path)).status, 200);
      assert.equal((await service.call('GET', path, { key: 'x' })).status, 200);
    }
  });
});

describe('a revoked key stops working within 1 s', () => {
  it('also on connections that it has used', async () => {
    const key = await ours.addKey('full_access');
    const ask = () => service.call('GET', `/v1/emails/${id}`, { key });
    assert.deepEqual(
      (await Promise.all(Array.from({ length: 20 }, ask))).map(({ status }) => status),
      Array(20).fill(200),
    );
    await endKey(service.pool, key);
    await eventually('refused', async () => (await ask()).status === 401, 1_000);
    for (const { status } of await Promise.all(Array.from({ length: 20 }, ask))) assert.equal(status, 401);
    assertRefused(await ask(), 401, 'unauthorized');
    assert.equal((await get(`Bearer ${ours.key}`)).status, 200);
  });
});

describe('presets', () => {
  const at = { scheduled_at: inFuture({ hours: 4 }) };
  const requests = {
    send: ['POST', () => '/v1/emails', () => ours.mail(), 202],
    read: ['GET', () => `/v1/emails/${id}`, () => undefined, 200],
    move: ['PATCH', () => `/v1/emails/${id}`, () => at, 200],
    cancel: ['POST', () => `/v1/emails/${id}/cancel`, () => ({}), 200],
  } as const;
  const may = {
    full_access: ['read', 'send', 'move', 'cancel'],
    sending_access: ['send', 'move', 'cancel'],
    read_only: ['read'],
  } as const;
  for (const [preset, allowed] of Object.entries(may) as [keyof typeof may, readonly string[]][]) {
    for (const [what, [method, path, json, status]] of Object.entries(requests)) {
      const fine = allowed.includes(what);
      it(`${preset} ${fine ? 'may' : 'may not'} ${what}`, async () => {
        id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
        const key = await ours.addKey(preset);
        const answer = await service.call(method, path(), { key, json: json() });
        if (fine) assert.equal(answer.status, status, answer.text);
        else assertRefused(answer, 403, 'insufficient_scope', undefined, `this API key has ${preset}`);
        const { status: now } = await ours.email(id);
        assert.equal(now, fine && what === 'cancel' ? 'canceled' : 'scheduled');
      });
    }
  }

  it('sending_access reads nothing, also of what it may send to: no 404 tells it', async () => {
    const key = await ours.addKey('sending_access');
    for (const each of [id, `em_${'0'.repeat(26)}`]) {
      for (const method of ['GET', 'HEAD'])
        assert.equal((await service.call(method, `/v1/emails/${each}`, { key })).status, 403);
    }
  });

  it('a key with domains reads everything of its organization; it sends and reschedules for its domains only', async () => {
    await ours.addDomain('limited.example');
    await ours.addDomain('second.example');
    for (const preset of ['full_access', 'sending_access'] as const) {
      const key = await ours.addKey(preset, ['limited.example', 'SECOND.example']);
      const send = (from: string) => service.call('POST', '/v1/emails', { key, json: ours.mail({ from }) });
      assert.equal((await send('a@limited.example')).status, 202);
      assert.equal((await send('a@second.example')).status, 202);
      assertRefused(
        await send(`a@${ours.domain}`),
        403,
        'insufficient_scope',
        'from',
        'this API key may not send from',
      );
      assertRefused(await send('a@mail.limited.example'), 403, 'domain_not_found', 'from');
      const other = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
      const own = await ours.sent({ from: 'a@limited.example', scheduled_at: inFuture({ hours: 3 }) });
      const reschedule = (email: string) => service.call('PATCH', `/v1/emails/${email}`, { key, json: at });
      assertRefused(await reschedule(other), 403, 'insufficient_scope');
      assert.equal((await reschedule(own)).status, 200);
    }
  });

  it("another organization's key is another organization's", async () => {
    const theirs = await service.organization();
    assertRefused(await theirs.call('GET', `/v1/emails/${id}`), 404, 'not_found');
    assertRefused(await theirs.send({ from: `a@${ours.domain}` }), 403, 'domain_not_found', 'from');
  });
});
