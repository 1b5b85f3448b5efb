import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  assertRefused,
  inFuture,
  type Organization,
  type Service,
  startService,
  TIMESTAMP,
} from './service.ts';

type Json = Record<string, unknown>;
interface Key extends Json {
  id: string;
  api_key: string;
}

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

function body(answer: Answer, status: number): Json {
  assert.equal(answer.status, status, answer.text);
  return answer.body as Json;
}
const make = async (fields: Json = {}, by = ours): Promise<Key> =>
  body(await by.call('POST', '/v1/keys', { json: { preset: 'full_access', ...fields } }), 201) as Key;
const domain = async (name: string, by = ours): Promise<string> => by.addDomain(name);
const FIELDS = ['id', 'name', 'preset', 'domain_ids', 'expires_at', 'allowed_ips', 'last_used_at', 'created_at'];

describe('POST /v1/keys', () => {
  it('makes a key and shows it this once', async () => {
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
    assert.ok(!service.log.join().includes(key.slice(-64)), 'no log line holds it');
  });

  it('takes what may be left out, as given; and as null', async () => {
    const wish = {
      preset: 'read_only',
      name: 'Ada’s 😀',
      domain_ids: [await domain('wish.example')],
      allowed_ips: ['203.0.113.7', '10.0.0.1/8', '2001:db8::/32', '::ffff:192.0.2.0/120', '0.0.0.0/0'],
    };
    const { expires_at: expiresAt, ...made } = await make({ ...wish, expires_at: '2099-01-01T01:00:00+01:00' });
    assert.equal(expiresAt, '2099-01-01T00:00:00.000Z');
    for (const [field, value] of Object.entries(wish)) assert.deepEqual(made[field], value, field);
    const nulls = { name: null, domain_ids: null, expires_at: null, allowed_ips: null };
    assert.equal((await make(nulls))['name'], null);
    const twice = await domain('twice.example');
    assert.deepEqual((await make({ domain_ids: [twice, twice] }))['domain_ids'], [twice]);
  });

  const full = { preset: 'full_access' };
  for (const [json, param] of [
    [{}, 'preset'],
    [{ preset: null }, 'preset'],
    [{ preset: 'admin' }, 'preset'],
    [{ ...full, name: '' }, 'name'],
    [{ ...full, name: 'x'.repeat(101) }, 'name'],
    [{ ...full, name: 'a\nb' }, 'name'],
    [{ ...full, name: 5 }, 'name'],
    [{ ...full, domain_ids: [] }, 'domain_ids'],
    [{ ...full, domain_ids: 'dm_1' }, 'domain_ids'],
    [{ ...full, domain_ids: [5] }, 'domain_ids.0'],
    [{ ...full, domain_ids: Array(101).fill('dm_1') }, 'domain_ids'],
    [{ ...full, domain_ids: ['dm_none'] }, 'domain_ids.0'],
    [{ ...full, expires_at: 'tomorrow' }, 'expires_at'],
    [{ ...full, expires_at: '2099-01-01' }, 'expires_at'],
    [{ ...full, expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ ...full, expires_at: 5 }, 'expires_at'],
    [{ ...full, allowed_ips: [] }, 'allowed_ips'],
    [{ ...full, allowed_ips: '::1' }, 'allowed_ips'],
    [{ ...full, allowed_ips: ['::1', 'localhost'] }, 'allowed_ips.1'],
    [{ ...full, allowed_ips: ['10.0.0.0/33'] }, 'allowed_ips.0'],
    [{ ...full, allowed_ips: Array(101).fill('::1') }, 'allowed_ips'],
    [{ ...full, scope: 'x' }, 'scope'],
  ] as const) {
    it(`422 at ${param}: ${JSON.stringify(json).slice(0, 80)}`, async () => {
      assertRefused(await ours.call('POST', '/v1/keys', { json }), 422, 'validation_error', param);
    });
  }

  it("another organization's domain is none, and says no more than an unknown one", async () => {
    const theirs = await service.organization();
    const [mine, foreign] = [await domain('mine.example'), await domain('foreign.example', theirs)];
    const answers = [];
    for (const id of [foreign, 'dm_none']) {
      const answer = await ours.call('POST', '/v1/keys', { json: { ...full, domain_ids: [mine, id] } });
      assertRefused(answer, 422, 'validation_error', 'domain_ids.1');
      answers.push(answer.text.replace(/req_\w+/, ''));
    }
    assert.equal(answers[0], answers[1]);
  });

  it('a key for certain domains makes none for others', async () => {
    const [first, second] = [await domain('first.example'), await domain('second.example')];
    const { api_key: key } = await make({ domain_ids: [first] });
    const ask = (json: Json) => service.call('POST', '/v1/keys', { key, json: { ...full, ...json } });
    assertRefused(await ask({}), 403, 'insufficient_scope', 'domain_ids');
    assertRefused(await ask({ domain_ids: null }), 403, 'insufficient_scope', 'domain_ids');
    assertRefused(await ask({ domain_ids: [first, second] }), 403, 'insufficient_scope', 'domain_ids.1');
    assert.deepEqual(body(await ask({ domain_ids: [first] }), 201)['domain_ids'], [first]);
  });
});

describe('a key that is limited', () => {
  it('makes none that lasts longer or may be used from elsewhere', async () => {
    const limits = { expires_at: '2090-01-01T00:00:00.000Z', allowed_ips: ['127.0.0.0/8'] };
    const { api_key: key } = await make(limits);
    const ask = (json: Json) => service.call('POST', '/v1/keys', { key, json: { preset: 'full_access', ...json } });
    assertRefused(await ask({}), 403, 'insufficient_scope', 'expires_at');
    assertRefused(await ask({ ...limits, expires_at: null }), 403, 'insufficient_scope', 'expires_at');
    const longer = { ...limits, expires_at: '2090-01-01T00:00:00.001Z' };
    assertRefused(await ask(longer), 403, 'insufficient_scope', 'expires_at');
    assertRefused(await ask({ ...limits, expires_at: 'tomorrow' }), 422, 'validation_error', 'expires_at');
    assertRefused(await ask({ ...limits, allowed_ips: null }), 403, 'insufficient_scope', 'allowed_ips');
    const wider = { ...limits, allowed_ips: ['127.0.0.1', '0.0.0.0/0'] };
    assertRefused(await ask(wider), 403, 'insufficient_scope', 'allowed_ips.1');
    const made = body(await ask({ ...limits, allowed_ips: ['127.0.0.1'] }), 201);
    assert.deepEqual([made['expires_at'], made['allowed_ips']], [limits.expires_at, ['127.0.0.1']]);
  });

  it('to domains sees and revokes keys for those domains only', async () => {
    const theirs = await service.organization();
    const [first, second] = [await domain('one.example', theirs), await domain('two.example', theirs)];
    const wide = await make({}, theirs);
    const other = await make({ domain_ids: [first, second] }, theirs);
    const { id, api_key: key } = await make({ domain_ids: [first] }, theirs);
    const own = body(
      await service.call('POST', '/v1/keys', { key, json: { preset: 'read_only', domain_ids: [first] } }),
      201,
    );
    const { keys } = body(await service.call('GET', '/v1/keys', { key }), 200) as { keys: Json[] };
    assert.deepEqual(
      keys.map((each) => each['id']),
      [own['id'], id],
    );
    for (const hidden of [wide.id, other.id]) {
      assertRefused(await service.call('GET', `/v1/keys/${hidden}`, { key }), 404, 'not_found');
      assertRefused(await service.call('DELETE', `/v1/keys/${hidden}`, { key }), 404, 'not_found');
      assert.equal((await theirs.call('GET', `/v1/keys/${hidden}`)).status, 200, 'it is still there');
    }
    assert.equal((await service.call('DELETE', `/v1/keys/${String(own['id'])}`, { key })).status, 204);
  });
});

describe('GET /v1/keys', () => {
  it('lists newest first, in pages; revoked ones not, expired ones too', async () => {
    const theirs = await service.organization();
    const made = [];
    for (let i = 0; i < 5; i++) made.unshift((await make({ name: `key ${i}` }, theirs)).id);
    await theirs.call('DELETE', `/v1/keys/${made[1]}`);
    await service.pool.query(`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, [made[2]]);
    const seen: unknown[] = [];
    for (let cursor = ''; ;) {
      const answer = await theirs.call('GET', `/v1/keys?limit=2${cursor}`);
      const page = body(answer, 200) as { keys: Json[]; has_more: boolean; next_cursor: string | null };
      for (const key of page.keys) assert.deepEqual(Object.keys(key), FIELDS);
      seen.push(...page.keys.map(({ id }) => id));
      assert.equal(page.has_more, page.next_cursor !== null);
      if (page.next_cursor === null) break;
      cursor = `&cursor=${page.next_cursor}`;
      assertRefused(await ours.call('GET', `/v1/keys?limit=2${cursor}`), 422, 'validation_error', 'cursor');
    }
    const first = `key_${theirs.key.split('_')[2]}`;
    assert.deepEqual(seen, [made[0], made[2], made[3], made[4], first]);
    for (const query of ['limit=0', 'limit=101', 'x=1', 'cursor=x']) {
      const param = query.split('=')[0];
      assertRefused(await theirs.call('GET', `/v1/keys?${query}`), 422, 'validation_error', param);
    }
  });

  it('tells when a key was last used, about a second later', async () => {
    const { id, api_key: key } = await make();
    const lastUsed = async () => body(await ours.call('GET', `/v1/keys/${id}`), 200)['last_used_at'];
    assert.equal(await lastUsed(), null);
    await service.call('GET', '/v1/emails', { key: `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}` });
    await service.call('GET', '/v1/emails', { key });
    const at = await eventually('noted', async () => (await lastUsed()) ?? undefined);
    assert.match(at as string, TIMESTAMP);
  });
});

describe('GET and DELETE /v1/keys/:id', () => {
  it('another organization’s key, one that never was, and one that was revoked: 404 alike', async () => {
    const theirs = await service.organization();
    const [foreign, revoked] = [await make({}, theirs), await make()];
    assert.equal((await ours.call('DELETE', `/v1/keys/${revoked.id}`)).status, 204);
    const answers = new Set<string>();
    for (const id of [foreign.id, revoked.id, `key_${'0'.repeat(26)}`, 'x']) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await ours.call(method, `/v1/keys/${id}`);
        assertRefused(answer, 404, 'not_found');
        answers.add(answer.text.replace(/req_\w+/, ''));
      }
    }
    assert.equal(answers.size, 1);
    assert.equal((await theirs.call('GET', `/v1/keys/${foreign.id}`)).status, 200, 'it is still there');
  });

  it('a key may revoke itself, and is refused from then on', async () => {
    const { id, api_key: key } = await make();
    assert.equal((await service.call('DELETE', `/v1/keys/${id}`, { key })).status, 204);
    const refused = async () => (await service.call('GET', '/v1/emails', { key })).status === 401;
    await eventually('refused', refused, 1_000);
  });
});

describe('a key that has expired, or is used from elsewhere', () => {
  const words = async (answer: Answer) => {
    assertRefused(answer, 401, 'unauthorized');
    return answer.text.replace(/req_\w+/, '');
  };

  it('is refused in the words of any bad key', async () => {
    const bad = await words(await service.call('GET', '/v1/emails', { key: 'x' }));
    const elsewhere = await make({ allowed_ips: ['203.0.113.0/24', '::1'] });
    assert.equal(await words(await service.call('GET', '/v1/emails', { key: elsewhere.api_key })), bad);
    const { api_key: key } = await make({ expires_at: inFuture({ ms: 3_000 }) });
    assert.equal((await service.call('GET', '/v1/emails', { key })).status, 200);
    const refusal = async () => {
      const answer = await service.call('GET', '/v1/emails', { key });
      return answer.status !== 200 && answer;
    };
    const expired = await eventually('expired', refusal, 5_000);
    assert.equal(await words(expired), bad);
  });

  it('is let in from an address or a range that it names, in IPv6 clothes too', async () => {
    for (const range of ['127.0.0.1', '127.0.0.0/8', '::ffff:127.0.0.1', '0.0.0.0/0']) {
      const { api_key: key } = await make({ allowed_ips: ['192.0.2.1', range] });
      assert.equal((await service.call('GET', '/v1/emails', { key })).status, 200, range);
    }
  });

  it('nobody’s word about where he calls from is taken, but that of a proxy that the operator trusts', async () => {
    const { api_key: key } = await make({ allowed_ips: ['203.0.113.7'] });
    const from = (at: Service, address: string) =>
      at.call('GET', '/v1/emails', { key, headers: { 'x-forwarded-for': address } });
    assert.equal((await from(service, '203.0.113.7')).status, 401);
    const { parseRanges } = await import('../../src/lib/ip-ranges.ts');
    const trusting = (ranges: string[]) =>
      startService({ pool: service.pool, databaseUrl: service.databaseUrl, trustedProxies: parseRanges(ranges) });
    const behind = await trusting(['127.0.0.1', '10.0.0.0/8']);
    const elsewhere = await trusting(['192.0.2.1']);
    try {
      for (const [given, status] of [
        ['203.0.113.7', 200],
        ['203.0.113.7, 10.1.2.3', 200],
        ['::ffff:203.0.113.7', 200],
        ['203.0.113.8', 401],
        ['203.0.113.7, 203.0.113.8', 401],
        ['nonsense', 401],
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
