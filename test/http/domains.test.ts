import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { dkimOwner, dkimSeal } from '../../src/sender-domains/deps.ts';
import { claimDueDomains, insertDomain } from '../../src/store/domains/domains.ts';
import { waitForBlocked } from '../support/locks.ts';
import { body, type Domain, record, startRegistrar } from './registrar.ts';
import { allPages, assertRefused, SECRET_KEY, TIMESTAMP } from './service.ts';

/** Sender domains without Postmark. Names are tested in test/accounts/organizations.test.ts. */
const registrar = await startRegistrar();
after(() => registrar.close());
const { service, ours, theirs, dns } = registrar;
beforeEach(() => dns.fail(undefined));

const FIELDS = [
  ...['name', 'status', 'trusted', 'created_at', 'verified_at', 'last_checked_at', 'next_check_at'],
  ...['open_tracking', 'click_tracking'],
];

describe('POST /v1/domains', () => {
  it('registers a domain and returns the DNS records it needs', async () => {
    const name = registrar.fresh();
    const domain = await registrar.add(name);
    const { id, records, ...rest } = domain;
    assert.match(id, /^dm_[0-9a-z]{26}$/);
    assert.deepEqual(Object.keys(rest), FIELDS);
    assert.deepEqual([rest.name, rest.status, rest.trusted, rest.verified_at], [name, 'pending', false, null]);
    assert.match(String(rest.next_check_at), TIMESTAMP);
    for (const each of records) {
      assert.deepEqual(Object.keys(each), [
        ...['record', 'type', 'name', 'value', 'priority', 'ttl', 'required', 'status', 'found', 'error'],
      ]);
      assert.deepEqual([each.status, each.found, each.error], ['pending', null, null]);
    }
    const shown = records.map((each) => [each.record, each.type, each.name, each.required].join(' '));
    assert.deepEqual(shown, [
      ...[`OWNERSHIP TXT _sendwright.${name} true`, `DKIM TXT sw1._domainkey.${name} true`],
      ...[`SPF TXT ${name} false`, 'DMARC TXT _dmarc.example.com false'],
    ]);
    assert.match(record(domain, 'OWNERSHIP').value, /^sendwright-verification=[0-9a-f]{32}$/);
    assert.match(record(domain, 'DKIM').value, /^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}=*$/);
    assert.equal(record(domain, 'SPF').value, 'v=spf1 a:smtp.example.net ~all');
    assert.deepEqual(await registrar.get(id), domain);
  });

  it('stores the private key sealed for its organization and domain', async () => {
    const { id } = await registrar.add(registrar.fresh());
    const { rows } = await service.pool.query<{ dkim_key: Buffer }>('SELECT dkim_key FROM domains WHERE id = $1', [id]);
    const sealed = rows[0]?.dkim_key as Buffer;
    const seal = dkimSeal(SECRET_KEY);
    assert.ok(seal.open(sealed, dkimOwner({ org_id: ours.id, id })).length > 1_000, 'it opens');
    assert.throws(() => seal.open(sealed, dkimOwner({ org_id: theirs.id, id })));
    assert.throws(() => seal.open(sealed, dkimOwner({ org_id: ours.id, id: 'dm_other' })));
  });

  it('makes it due for a check and publishes domain.created', async () => {
    await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hooks' } });
    const { id, name } = await registrar.add(registrar.fresh());
    assert.ok((await claimDueDomains(service.pool, 100)).includes(id));
    assert.deepEqual((await registrar.eventsOf('domain.created')).at(-1), { domainId: id, name, status: 'pending' });
  });

  for (const [name, message] of [
    [undefined, 'is required'],
    ['localhost', /is not a domain name$/],
    ['CO.UK', 'co.uk is a public suffix'],
    [`${'a'.repeat(55)}.`.repeat(4) + 'com', 'must be at most 220 characters'],
    ['x'.repeat(1_000_000), /^name: must be at most 253 characters$/],
  ] as const) {
    it(`returns 422 for ${JSON.stringify([name]).slice(1, 40)}`, async () => {
      assertRefused(await registrar.post(name), 422, 'validation_error', 'name', message);
    });
  }
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
    // The other records are recommendations.
    for (const kind of ['SPF', 'DMARC']) assert.equal(record(checked, kind).status, 'pending');
    assert.deepEqual(await registrar.get(domain.id), checked);
    assert.equal((await registrar.send(domain.name)).status, 202);
    const data = { domainId: domain.id, name: domain.name, status: 'verified' };
    assert.deepEqual((await registrar.eventsOf('domain.verified')).at(-1), data);
    const day = Date.parse(String(checked.next_check_at)) - Date.parse(String(checked.last_checked_at));
    assert.ok(Math.abs(day - 86_400_000) < 60_000, `${day} ms`);
  });

  it('queries DNS once for repeated requests within seconds', async () => {
    const domain = await registrar.add(registrar.fresh());
    const { name } = record(domain, 'OWNERSHIP');
    const first = await registrar.verify(domain.id);
    registrar.publish(domain);
    const again = body(await ours.call('POST', `/v1/domains/${domain.id}/verify`), 200);
    assert.deepEqual(again, first);
    assert.equal(dns.questions.filter((question) => question === `TXT ${name}`).length, 1);
    assert.equal((await registrar.verify(domain.id)).status, 'verified');
  });

  it('changes nothing while DNS does not answer', async () => {
    const pending = await registrar.add(registrar.fresh());
    for (const fault of ['REFUSED', 'silent'] as const) {
      dns.fail(fault);
      const checked = await registrar.verify(pending.id);
      assert.equal(checked.status, 'pending');
      const { status, found, error } = record(checked, 'OWNERSHIP');
      assert.deepEqual([status, found], ['pending', null]);
      assert.match(String(error), /^the DNS query failed: .*; it will be retried$/);
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

  it('restarts the checks of a failed domain', async () => {
    const { id } = await registrar.add(registrar.fresh());
    await service.pool.query(`UPDATE domains SET status = 'failed', next_check_at = NULL, tries = 20 WHERE id = $1`, [
      id,
    ]);
    const restarted = await registrar.verify(id);
    assert.equal(restarted.status, 'pending');
    assert.match(String(restarted.next_check_at), TIMESTAMP);
  });

  it('leaves a trusted domain verified without records in DNS', async () => {
    const name = registrar.fresh();
    const id = await ours.addDomain(name);
    const checked = await registrar.verify(id);
    assert.deepEqual([checked.status, checked.trusted, checked.next_check_at], ['verified', true, null]);
    assert.deepEqual(record(checked, 'OWNERSHIP').found, []);
    assert.ok(!checked.records.some((each) => each.record === 'DKIM'), 'it has no key');
    assert.equal((await registrar.send(name)).status, 202);
  });
});

it('GET /v1/domains lists domains latest first, in pages, without records', async () => {
  const org = await service.organization();
  const made: string[] = [];
  for (let i = 0; i < 4; i++) made.unshift((await registrar.add(registrar.fresh(), org)).id);
  const listed = await allPages<Domain>(org, '/v1/domains', 3);
  assert.deepEqual(listed.map(({ id }) => id).slice(0, 4), made);
  assert.equal(listed.length, 5, 'and the one it was created with');
  for (const domain of listed) assert.deepEqual(Object.keys(domain), ['id', ...FIELDS]);
});

describe('DELETE /v1/domains/:id', () => {
  it('deletes a domain, refuses email from it and publishes domain.deleted', async () => {
    const { id, name } = await registrar.verified();
    const deleted = await ours.call('DELETE', `/v1/domains/${id}`);
    assert.deepEqual([deleted.status, deleted.text], [204, '']);
    assertRefused(await ours.call('GET', `/v1/domains/${id}`), 404, 'not_found');
    assertRefused(await registrar.send(name), 403, 'domain_not_found', 'from');
    assert.deepEqual((await registrar.eventsOf('domain.deleted')).at(-1), { domainId: id, name, status: 'verified' });
  });
});

describe('a domain of several organizations', () => {
  it('returns 409 if another organization has verified it, without naming it', async () => {
    const { name } = await registrar.verified();
    const trusted = registrar.fresh();
    await ours.addDomain(trusted);
    for (const each of [name, name.toUpperCase(), trusted]) {
      const answer = await registrar.post(each, theirs);
      assertRefused(answer, 409, 'conflict', 'name', `the domain ${each} is registered already`);
      assert.ok(!answer.text.includes(ours.id) && !answer.text.includes('another'), answer.text);
    }
  });

  it('belongs to the first that proves it, and fails for the other', async () => {
    const name = registrar.fresh();
    await theirs.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hooks' } });
    const [mine, other] = [await registrar.add(name), await registrar.add(name, theirs)];
    assert.notEqual(record(mine, 'OWNERSHIP').value, record(other, 'OWNERSHIP').value);
    registrar.publish(mine);
    assert.equal((await registrar.verify(mine.id)).status, 'verified');
    const failed = await registrar.get(other.id, theirs);
    assert.deepEqual([failed.status, failed.verified_at, failed.next_check_at], ['failed', null, null]);
    assert.match(String(record(failed, 'OWNERSHIP').error), /^another account has proved that it owns this domain/);
    const data = { domainId: other.id, name, status: 'failed' };
    assert.deepEqual((await registrar.eventsOf('domain.failed', theirs)).at(-1), data);
    // Its own records do not help while the domain is taken.
    registrar.publish(other);
    assert.equal((await registrar.verify(other.id, theirs)).status, 'failed');
    assertRefused(await registrar.send(name, theirs), 403, 'domain_not_verified', 'from');
    assert.equal((await registrar.get(mine.id)).status, 'verified');
  });

  it('belongs to one of several that prove it concurrently', async () => {
    const name = registrar.fresh();
    const organizations = await Promise.all(Array.from({ length: 3 }, () => service.organization()));
    const domains = await Promise.all(organizations.map((by) => registrar.add(name, by)));
    const tokens = domains.map((domain) => record(domain, 'OWNERSHIP').value);
    dns.txt(`_sendwright.${name}`, ...tokens);
    dns.txt(`sw1._domainkey.${name}`, record(domains[0] as Domain, 'DKIM').value);
    await service.pool.query(
      `UPDATE domains SET (dkim_public, dkim_key) = (SELECT dkim_public, dkim_key FROM domains WHERE id = $2) WHERE name = $1`,
      [name, domains[0]?.id],
    );
    await Promise.all(domains.map(({ id }, i) => registrar.verify(id, organizations[i])));
    const after = await Promise.all(domains.map(({ id }, i) => registrar.get(id, organizations[i])));
    assert.deepEqual(after.map(({ status }) => status).sort(), ['failed', 'failed', 'verified']);
  });

  it('fails if another organization is granted it during the check', async (t) => {
    const mine = await registrar.add(registrar.fresh());
    registrar.publish(mine);
    const client = await service.pool.connect();
    t.after(() => client.release());
    await client.query('BEGIN');
    await insertDomain(client, newId('dm'), theirs.id, mine.name, true);
    const checking = registrar.verify(mine.id);
    await waitForBlocked(service.pool);
    await client.query('COMMIT');
    assert.equal((await checking).status, 'failed');
  });

  it('is not proved by the token of another organization', async () => {
    const name = registrar.fresh();
    const mine = await registrar.add(name);
    const other = await registrar.add(name, theirs);
    const { value } = record(mine, 'OWNERSHIP');
    dns.txt(`_sendwright.${name}`, value);
    dns.txt(`sw1._domainkey.${name}`, record(other, 'DKIM').value);
    const checked = await registrar.verify(other.id, theirs);
    assert.equal(checked.status, 'pending');
    const { status, found, error } = record(checked, 'OWNERSHIP');
    assert.deepEqual([status, found], ['failed', [value]]);
    assert.match(String(error), /^the value is another one/);
  });

  it('must be proved with a new token after its deletion, by any organization', async () => {
    const name = registrar.fresh();
    const first = await registrar.verified(name);
    assert.equal((await ours.call('DELETE', `/v1/domains/${first.id}`)).status, 204);
    // The token of the deleted domain is still in DNS.
    const next = await registrar.add(name, theirs);
    assert.equal((await registrar.verify(next.id, theirs)).status, 'pending');
    assert.equal((await registrar.verify((await registrar.add(name)).id)).status, 'pending');
    registrar.publish(next);
    assert.equal((await registrar.verify(next.id, theirs)).status, 'verified');
    assertRefused(await registrar.send(name), 403, 'domain_not_verified', 'from');
  });

  it('is proved separately if another organization has its subdomain or parent domain', async () => {
    for (const [first, second] of [
      ['sub1.example.com', 'mail.sub1.example.com'],
      ['mail.sub2.example.com', 'sub2.example.com'],
    ] as const) {
      await registrar.verified(first);
      assert.equal((await registrar.verify((await registrar.add(second, theirs)).id, theirs)).status, 'pending');
      assertRefused(await registrar.send(first, theirs), 403, 'domain_not_found', 'from');
    }
  });

  it('fails for pending organizations if the operator trusts another one', async () => {
    const name = registrar.fresh();
    const pending = await registrar.add(name, theirs);
    await ours.addDomain(name);
    assert.equal((await registrar.get(pending.id, theirs)).status, 'failed');
  });
});

describe('PATCH /v1/domains/:id', () => {
  const patch = (id: string, json: object) => ours.call('PATCH', `/v1/domains/${id}`, { json });

  it('is refused with the name of the setting while PUBLIC_URL is missing, unless it switches tracking off', async () => {
    const domain = await registrar.add(registrar.fresh());
    for (const field of ['open_tracking', 'click_tracking']) {
      const refused = await patch(domain.id, { [field]: true });
      assertRefused(refused, 422, 'validation_error', field, /PUBLIC_URL is not set/);
    }
    assert.deepEqual(body(await patch(domain.id, { open_tracking: false }), 200), domain);
  });

  it('accepts booleans only', async () => {
    const { id } = await registrar.add(registrar.fresh());
    for (const [field, value] of Object.entries({ open_tracking: 'true', click_tracking: 1, name: 'x.example' })) {
      assertRefused(await patch(id, { [field]: value }), 422, 'validation_error', field);
    }
  });
});
