import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { dkimOwner, dkimSeal } from '../../src/sender-domains/deps.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { body, type Domain, record, type Registrar, startRegistrar } from './registrar.ts';
import { assertRefused, type Organization, type Service, SECRET_KEY, TIMESTAMP } from './service.ts';

const ABSENT = `dm_${'0'.repeat(26)}`;
let registrar: Registrar;
let service: Service;
let ours: Organization;
let theirs: Organization;
let dns: DnsServer;
before(async () => {
  registrar = await startRegistrar();
  ({ service, ours, theirs, dns } = registrar);
});
after(() => registrar.close());
beforeEach(() => dns.fail(undefined));

describe('POST /v1/domains', () => {
  it('registers a domain with the records that belong into its DNS', async () => {
    const name = registrar.fresh();
    const domain = await registrar.add(name);
    const { id, records, ...rest } = domain;
    assert.match(id, /^dm_[0-9a-z]{26}$/);
    assert.deepEqual(Object.keys(rest), [
      'name',
      'status',
      'trusted',
      'created_at',
      'verified_at',
      'last_checked_at',
      'next_check_at',
    ]);
    assert.deepEqual([rest.name, rest.status, rest.trusted, rest.verified_at], [name, 'pending', false, null]);
    assert.match(String(rest.next_check_at), TIMESTAMP);
    for (const each of records) {
      assert.deepEqual(Object.keys(each), [
        ...['record', 'type', 'name', 'value', 'priority', 'ttl', 'required', 'status', 'found', 'error'],
      ]);
      assert.deepEqual([each.status, each.found, each.error], ['pending', null, null]);
    }
    assert.deepEqual(
      records.map((each) => [each.record, each.type, each.name, each.required]),
      [
        ['OWNERSHIP', 'TXT', `_sendwright.${name}`, true],
        ['DKIM', 'TXT', `sw1._domainkey.${name}`, true],
        ['SPF', 'TXT', name, false],
        ['DMARC', 'TXT', '_dmarc.example.com', false],
      ],
    );
    assert.match(record(domain, 'OWNERSHIP').value, /^sendwright-verification=[0-9a-f]{32}$/);
    assert.match(record(domain, 'DKIM').value, /^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}=*$/);
    assert.equal(record(domain, 'SPF').value, 'v=spf1 a:smtp.example.net ~all');
    assert.deepEqual(await registrar.get(id), domain);
  });

  it('keeps the private key sealed, for its organization and domain alone', async () => {
    const { id } = await registrar.add(registrar.fresh());
    const { rows } = await service.pool.query<{ dkim_key: Buffer }>('SELECT dkim_key FROM domains WHERE id = $1', [id]);
    const sealed = rows[0]?.dkim_key as Buffer;
    const seal = dkimSeal(SECRET_KEY);
    assert.ok(seal.open(sealed, dkimOwner({ org_id: ours.id, id })).length > 1_000, 'it opens');
    assert.throws(() => seal.open(sealed, dkimOwner({ org_id: theirs.id, id })));
    assert.throws(() => seal.open(sealed, dkimOwner({ org_id: ours.id, id: ABSENT })));
  });

  it('leaves word to watch it, and tells domain.created', async () => {
    const endpoint = { url: 'https://example.com/hooks' };
    await ours.call('POST', '/v1/webhooks', { json: endpoint });
    const name = registrar.fresh();
    const { id } = await registrar.add(name);
    const { rows } = await service.pool.query(
      `SELECT message_id FROM outbox WHERE action = 'domain' AND message_id = $1`,
      [id],
    );
    assert.equal(rows.length, 1);
    assert.deepEqual((await registrar.told(ours, 'domain.created')).at(-1), { domainId: id, name, status: 'pending' });
  });

  it('takes names in any case and script, and shows A-labels', async () => {
    assert.equal((await registrar.add(' Mail.Case.EXAMPLE ')).name, 'mail.case.example');
    assert.equal((await registrar.add('bücher.example')).name, 'xn--bcher-kva.example');
  });

  for (const [name, says] of [
    [undefined, 'is required'],
    [1, /.*/],
    ['', 'is not'],
    ['localhost', /is not a domain name$/],
    ['example.com.', /is not a domain name$/],
    ['a_b.example.com', /is not a domain name$/],
    ['192.0.2.1', /is not a domain name$/],
    ['*.example.com', /is not a domain name$/],
    ['co.uk', 'co.uk is a public suffix'],
    ['CO.UK', 'co.uk is a public suffix'],
    ['anything.ck', 'anything.ck is a public suffix'],
    [`${'a'.repeat(55)}.`.repeat(4) + 'com', 'must be at most 220 characters'],
  ] as const) {
    it(`refuses ${JSON.stringify([name]).slice(1, 40)}`, async () => {
      const answer = await registrar.post(name);
      assertRefused(answer, 422, 'validation_error', 'name', says === 'is not' || says === 'is required' ? /.*/ : says);
    });
  }

  it('refuses unknown fields', async () => {
    const answer = await ours.call('POST', '/v1/domains', { json: { name: registrar.fresh(), region: 'eu' } });
    assertRefused(answer, 422, 'validation_error', 'region');
  });

  it('409 for a domain that the organization has, however it is written', async () => {
    await registrar.add('twice.example');
    for (const name of ['twice.example', 'TWICE.example', 'ｔｗｉｃｅ.example', 'twice。example']) {
      assertRefused(await registrar.post(name), 409, 'conflict', 'name', `the domain ${name} is registered already`);
    }
  });

  it('a look-alike is another domain', async () => {
    await registrar.add('paypal.example');
    assert.equal((await registrar.add('pаypal.example', theirs)).name, 'xn--pypal-4ve.example');
  });
});

describe('POST /v1/domains/:id/verify', () => {
  it('verifies a domain whose required records are there, and email can be sent from it', async () => {
    const domain = await registrar.add(registrar.fresh());
    assertRefused(await registrar.send(domain.name), 403, 'domain_not_verified', 'from');
    registrar.publish(domain);
    const checked = await registrar.verify(domain.id);
    assert.equal(checked.status, 'verified');
    assert.match(String(checked.verified_at), TIMESTAMP);
    assert.match(String(checked.last_checked_at), TIMESTAMP);
    for (const kind of ['OWNERSHIP', 'DKIM']) {
      const { status, found, value, error } = record(checked, kind);
      assert.deepEqual([status, found, error], ['verified', [value], null]);
    }
    // The others are advice.
    for (const kind of ['SPF', 'DMARC']) assert.equal(record(checked, kind).status, 'pending');
    assert.deepEqual(await registrar.get(domain.id), checked);
    assert.equal((await registrar.send(domain.name)).status, 202);
    assert.deepEqual((await registrar.told(ours, 'domain.verified')).at(-1), {
      domainId: domain.id,
      name: domain.name,
      status: 'verified',
    });
    const day = Date.parse(String(checked.next_check_at)) - Date.parse(String(checked.last_checked_at));
    assert.ok(Math.abs(day - 86_400_000) < 60_000, `${day} ms`);
  });

  it('stays pending while one of them is missing, and says which', async () => {
    const domain = await registrar.add(registrar.fresh());
    const ownership = record(domain, 'OWNERSHIP');
    dns.txt(ownership.name, ownership.value);
    const half = await registrar.verify(domain.id);
    assert.equal(half.status, 'pending');
    assert.equal(record(half, 'OWNERSHIP').status, 'verified');
    const { status, found, error } = record(half, 'DKIM');
    assert.deepEqual([status, found, error], ['pending', [], 'there is no such record yet']);
  });

  it('asks DNS once, however often that is asked for within seconds', async () => {
    const domain = await registrar.add(registrar.fresh());
    const { name } = record(domain, 'OWNERSHIP');
    const first = await registrar.verify(domain.id);
    registrar.publish(domain);
    const again = body(await ours.call('POST', `/v1/domains/${domain.id}/verify`), 200);
    assert.deepEqual(again, first);
    assert.equal(dns.questions.filter((question) => question === `TXT ${name}`).length, 1);
    assert.equal((await registrar.verify(domain.id)).status, 'verified');
  });

  it('DNS that cannot be asked changes nothing', async () => {
    const waiting = await registrar.add(registrar.fresh());
    for (const fault of ['SERVFAIL', 'REFUSED', 'silent'] as const) {
      dns.fail(fault);
      const checked = await registrar.verify(waiting.id);
      assert.equal(checked.status, 'pending');
      const { status, found, error } = record(checked, 'OWNERSHIP');
      assert.deepEqual([status, found], ['pending', null]);
      assert.match(String(error), /^DNS could not be asked: .*; it is asked again$/);
    }
    dns.fail(undefined);
    const done = await registrar.verified();
    dns.fail('SERVFAIL');
    const unasked = await registrar.verify(done.id);
    assert.equal(unasked.status, 'verified');
    assert.deepEqual(
      unasked.records.filter(({ required }) => required),
      done.records.filter(({ required }) => required),
    );
  });

  it('a domain that has failed begins anew', async () => {
    const { id } = await registrar.add(registrar.fresh());
    await service.pool.query(`UPDATE domains SET status = 'failed', next_check_at = NULL, tries = 20 WHERE id = $1`, [
      id,
    ]);
    await service.pool.query('DELETE FROM outbox');
    const begun = await registrar.verify(id);
    assert.equal(begun.status, 'pending');
    assert.match(String(begun.next_check_at), TIMESTAMP);
    const { rowCount } = await service.pool.query(`SELECT FROM outbox WHERE action = 'domain' AND message_id = $1`, [
      id,
    ]);
    assert.equal(rowCount, 1);
  });

  it('a domain taken on trust stays verified, whatever DNS says', async () => {
    const name = registrar.fresh();
    const id = await ours.addDomain(name);
    const checked = await registrar.verify(id);
    assert.deepEqual([checked.status, checked.trusted, checked.next_check_at], ['verified', true, null]);
    assert.deepEqual(record(checked, 'OWNERSHIP').found, []);
    assert.ok(!checked.records.some((each) => each.record === 'DKIM'), 'it has no key');
    assert.equal((await registrar.send(name)).status, 202);
  });
});

describe('GET /v1/domains', () => {
  it('lists newest first, in pages, without records', async () => {
    const org = await service.organization();
    const made = [];
    for (let i = 0; i < 4; i++) made.unshift((await registrar.add(registrar.fresh(), org)).id);
    const seen: string[] = [];
    for (let query = '?limit=3'; ;) {
      const answer = await org.call('GET', `/v1/domains${query}`);
      assert.equal(answer.status, 200, answer.text);
      const page = answer.body as { domains: Domain[]; has_more: boolean; next_cursor: string | null };
      for (const domain of page.domains) {
        assert.deepEqual(Object.keys(domain), [
          ...['id', 'name', 'status', 'trusted', 'created_at', 'verified_at', 'last_checked_at', 'next_check_at'],
        ]);
        seen.push(domain.id);
      }
      assert.equal(page.has_more, page.next_cursor !== null);
      if (page.next_cursor === null) break;
      query = `?limit=3&cursor=${page.next_cursor}`;
      assertRefused(await ours.call('GET', `/v1/domains${query}`), 422, 'validation_error', 'cursor');
    }
    assert.deepEqual(seen.slice(0, 4), made);
    assert.equal(seen.length, 5, 'and the one that it had');
  });
});

describe('DELETE /v1/domains/:id', () => {
  it('forgets a domain: nothing is accepted from it, its workflow is told, and endpoints too', async () => {
    const { id, name } = await registrar.verified();
    await service.pool.query('DELETE FROM outbox');
    const gone = await ours.call('DELETE', `/v1/domains/${id}`);
    assert.deepEqual([gone.status, gone.text], [204, '']);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/verify'],
      ['DELETE', ''],
    ] as const) {
      assertRefused(await ours.call(method, `/v1/domains/${id}${path}`), 404, 'not_found');
    }
    assertRefused(await registrar.send(name), 403, 'domain_not_found', 'from');
    const { rowCount } = await service.pool.query(`SELECT FROM outbox WHERE action = 'domain' AND message_id = $1`, [
      id,
    ]);
    assert.equal(rowCount, 1);
    assert.deepEqual((await registrar.told(ours, 'domain.deleted')).at(-1), { domainId: id, name, status: 'verified' });
  });
});

describe('who may', () => {
  it('another organization’s domain and one that does not exist look the same', async () => {
    const { id } = await registrar.add(registrar.fresh());
    for (const each of [id, ABSENT]) {
      for (const [method, path] of [
        ['GET', ''],
        ['POST', '/verify'],
        ['DELETE', ''],
      ] as const) {
        const answer = await theirs.call(method, `/v1/domains/${each}${path}`);
        assertRefused(answer, 404, 'not_found', undefined, 'there is no domain with this id');
      }
    }
    assert.equal((await registrar.get(id)).status, 'pending');
  });

  it('read_only reads, sending_access does nothing, and only full_access writes', async () => {
    const { id } = await registrar.add(registrar.fresh());
    const [readOnly, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    for (const path of ['', `/${id}`]) {
      assert.equal((await service.call('GET', `/v1/domains${path}`, { key: readOnly })).status, 200);
      assertRefused(await service.call('GET', `/v1/domains${path}`, { key: sending }), 403, 'insufficient_scope');
    }
    for (const key of [readOnly, sending]) {
      for (const [method, path, json] of [
        ['POST', '', { name: registrar.fresh() }],
        ['POST', `/${id}/verify`, undefined],
        ['DELETE', `/${id}`, undefined],
      ] as const) {
        assertRefused(await service.call(method, `/v1/domains${path}`, { key, json }), 403, 'insufficient_scope');
      }
    }
  });
});
