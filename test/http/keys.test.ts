import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseRanges } from '../../src/lib/ip-ranges.ts';
import { eventually } from '../support/eventually.ts';
import {
  allPages,
  type Answer,
  assertRefused,
  bodyOf,
  inFuture,
  type Service,
  startService,
  TIMESTAMP,
  useService,
} from './service.ts';

type Json = Record<string, unknown>;
interface Key extends Json {
  id: string;
  api_key: string;
}

/** API keys. Their bounds are tested in test/accounts/key-bounds.test.ts, foreign ids in two-organizations.test.ts. */
const service = await useService();
const ours = await service.organization();

const make = async (fields: Json = {}, by = ours): Promise<Key> =>
  bodyOf<Key>(await by.call('POST', '/v1/keys', { json: { preset: 'full_access', ...fields } }), 201);
const FIELDS = ['id', 'name', 'preset', 'domain_ids', 'expires_at', 'allowed_ips', 'last_used_at', 'created_at'];

describe('POST /v1/keys', () => {
  it('creates a key and returns it only once', async () => {
    const { id, api_key: key, created_at: createdAt, ...rest } = await make({ preset: 'sending_access' });
    assert.match(id, /^key_[0-9a-z]{26}$/);
    assert.match(key, new RegExp(`^sw_live_${id.slice(4)}_[0-9a-f]{64}$`));
    assert.match(String(createdAt), TIMESTAMP);
    const nothing = { name: null, domain_ids: null, expires_at: null, allowed_ips: null, last_used_at: null };
    assert.deepEqual(rest, { preset: 'sending_access', ...nothing });
    assert.equal((await service.call('POST', '/v1/emails', { key, json: ours.mail() })).status, 202);
    for (const path of [`/v1/keys/${id}`, '/v1/keys']) {
      const shown = await ours.call('GET', path);
      assert.equal(shown.status, 200);
      assert.ok(!shown.text.includes('api_key') && !shown.text.includes(key.slice(-64)), shown.text);
    }
    assert.ok(!service.log.join().includes(key.slice(-64)), 'it is not logged');
  });

  it('stores optional fields, which may be null', async () => {
    const fields = {
      preset: 'read_only',
      name: 'Ada’s 😀',
      domain_ids: [await ours.addDomain('optional.example')],
      allowed_ips: ['203.0.113.7', '10.0.0.1/8', '2001:db8::/32', '::ffff:192.0.2.0/120', '0.0.0.0/0'],
    };
    const { expires_at: expiresAt, ...made } = await make({ ...fields, expires_at: '2099-01-01T01:00:00+01:00' });
    assert.equal(expiresAt, '2099-01-01T00:00:00.000Z');
    for (const [field, value] of Object.entries(fields)) assert.deepEqual(made[field], value, field);
    const nulls = { name: null, domain_ids: null, expires_at: null, allowed_ips: null };
    assert.equal((await make(nulls))['name'], null);
    const twice = await ours.addDomain('twice.example');
    assert.deepEqual((await make({ domain_ids: [twice, twice] }))['domain_ids'], [twice]);
  });

  const full = { preset: 'full_access' };
  for (const [json, param] of [
    [{}, 'preset'],
    [{ ...full, name: 'x'.repeat(101) }, 'name'],
    [{ ...full, name: 'a\nb' }, 'name'],
    [{ ...full, domain_ids: [] }, 'domain_ids'],
    [{ ...full, domain_ids: ['dm_none'] }, 'domain_ids.0'],
    [{ ...full, domain_ids: ['dm_none\0'] }, 'domain_ids.0'],
    [{ ...full, expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ ...full, allowed_ips: ['::1', 'localhost'] }, 'allowed_ips.1'],
    [{ ...full, scope: 'x' }, 'scope'],
  ] as const) {
    it(`422 at ${param}: ${JSON.stringify(json).slice(0, 80)}`, async () => {
      assertRefused(await ours.call('POST', '/v1/keys', { json }), 422, 'validation_error', param);
    });
  }
});

describe('a key that is limited', () => {
  it('creates no key with a later expiry or more addresses', async () => {
    const limits = { expires_at: '2090-01-01T00:00:00.000Z', allowed_ips: ['127.0.0.0/8'] };
    const { api_key: key } = await make(limits);
    const ask = (json: Json) => service.call('POST', '/v1/keys', { key, json: { preset: 'full_access', ...json } });
    assertRefused(await ask({ ...limits, expires_at: null }), 403, 'insufficient_scope', 'expires_at');
    const wider = { ...limits, allowed_ips: ['127.0.0.1', '0.0.0.0/0'] };
    assertRefused(await ask(wider), 403, 'insufficient_scope', 'allowed_ips.1');
    const made = bodyOf(await ask({ ...limits, allowed_ips: ['127.0.0.1'] }), 201);
    assert.deepEqual([made['expires_at'], made['allowed_ips']], [limits.expires_at, ['127.0.0.1']]);
  });

  it('to certain domains returns and revokes keys for these only', async () => {
    const theirs = await service.organization();
    const [first, second] = [await theirs.addDomain('one.example'), await theirs.addDomain('two.example')];
    const wide = await make({}, theirs);
    const other = await make({ domain_ids: [first, second] }, theirs);
    const { id, api_key: key } = await make({ domain_ids: [first] }, theirs);
    const issue = (...domain_ids: string[]) =>
      service.call('POST', '/v1/keys', { key, json: { preset: 'read_only', domain_ids } });
    assertRefused(await issue(first, second), 403, 'insufficient_scope', 'domain_ids.1');
    const own = bodyOf<Key>(await issue(first), 201);
    const { keys } = bodyOf<{ keys: Key[] }>(await service.call('GET', '/v1/keys', { key }), 200);
    const ids = keys.map((each) => each.id);
    assert.deepEqual(ids, [own.id, id]);
    for (const hidden of [wide.id, other.id]) {
      assertRefused(await service.call('GET', `/v1/keys/${hidden}`, { key }), 404, 'not_found');
      assertRefused(await service.call('DELETE', `/v1/keys/${hidden}`, { key }), 404, 'not_found');
      assert.equal((await theirs.call('GET', `/v1/keys/${hidden}`)).status, 200, 'it is still there');
    }
    assert.equal((await service.call('DELETE', `/v1/keys/${own.id}`, { key })).status, 204);
  });
});

describe('GET /v1/keys', () => {
  it('lists keys latest first, in pages, without revoked and with expired ones', async () => {
    const theirs = await service.organization();
    const made = [];
    for (let i = 0; i < 5; i++) made.unshift((await make({ name: `key ${i}` }, theirs)).id);
    await theirs.call('DELETE', `/v1/keys/${made[1]}`);
    await service.pool.query(`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, [made[2]]);
    const listed = await allPages<Key>(theirs, '/v1/keys', 2);
    for (const key of listed) assert.deepEqual(Object.keys(key), FIELDS);
    const ids = listed.map(({ id }) => id);
    assert.deepEqual(ids, [made[0], made[2], made[3], made[4], `key_${theirs.key.split('_')[2]}`]);
  });

  it('contains the time of the last use', async () => {
    const { id, api_key: key } = await make();
    const lastUsed = async () => bodyOf(await ours.call('GET', `/v1/keys/${id}`), 200)['last_used_at'];
    assert.equal(await lastUsed(), null);
    await service.call('GET', '/v1/emails', { key: `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}` });
    await service.call('GET', '/v1/emails', { key });
    const at = await eventually('the use is recorded', async () => (await lastUsed()) ?? undefined);
    assert.match(at as string, TIMESTAMP);
  });
});

describe('a revoked key', () => {
  it('may have revoked itself, is not found, and is refused from then on', async () => {
    const { id, api_key: key } = await make();
    assert.equal((await service.call('DELETE', `/v1/keys/${id}`, { key })).status, 204);
    for (const method of ['GET', 'DELETE']) {
      assertRefused(await ours.call(method, `/v1/keys/${id}`), 404, 'not_found');
    }
    await eventually('refused', async () => (await service.call('GET', '/v1/emails', { key })).status === 401);
  });
});

describe('a key that has expired or is used from another address', () => {
  const messageOf = (answer: Answer) => {
    assertRefused(answer, 401, 'unauthorized');
    return answer.text.replace(/req_\w+/, '');
  };

  it('is refused with the message of any invalid key', async () => {
    const invalid = messageOf(await service.call('GET', '/v1/emails', { key: 'x' }));
    const elsewhere = await make({ allowed_ips: ['203.0.113.0/24', '::1'] });
    assert.equal(messageOf(await service.call('GET', '/v1/emails', { key: elsewhere.api_key })), invalid);
    const { api_key: key } = await make({ expires_at: inFuture({ ms: 1_500 }) });
    assert.equal((await service.call('GET', '/v1/emails', { key })).status, 200);
    const refusal = async () => {
      const answer = await service.call('GET', '/v1/emails', { key });
      return answer.status !== 200 && answer;
    };
    const expired = await eventually('expired', refusal);
    assert.equal(messageOf(expired), invalid);
  });

  it('is accepted by X-Forwarded-For of a trusted proxy only', async () => {
    const { api_key: key } = await make({ allowed_ips: ['203.0.113.7'] });
    const from = (at: Service, address: string) =>
      at.call('GET', '/v1/emails', { key, headers: { 'x-forwarded-for': address } });
    assert.equal((await from(service, '203.0.113.7')).status, 401);
    const trusting = (ranges: string[]) => startService({ pool: service.pool, trustedProxies: parseRanges(ranges) });
    const behind = await trusting(['127.0.0.1', '10.0.0.0/8']);
    const elsewhere = await trusting(['192.0.2.1']);
    try {
      for (const [given, status] of [
        ['203.0.113.7', 200],
        ['203.0.113.7, 10.1.2.3', 200],
        ['::ffff:203.0.113.7', 200],
        ['203.0.113.7, 203.0.113.8', 401],
        ['', 401],
      ] as const) {
        assert.equal((await from(behind, given)).status, status, given);
      }
      assert.equal((await from(elsewhere, '203.0.113.7')).status, 401);
    } finally {
      await behind.close();
      await elsewhere.close();
    }
  });
});
