import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { newId } from '../../src/domain/ids.ts';
import { insertDomain } from '../../src/store/domains/domains.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Domain, record, type Registrar, startRegistrar } from './registrar.ts';
import { assertRefused, type Organization, type Service } from './service.ts';

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

describe('who proves it, has it', () => {
  it('409 for a domain that another organization has verified, without a word of who', async () => {
    const { name } = await registrar.verified();
    const trusted = registrar.fresh();
    await ours.addDomain(trusted);
    for (const each of [name, name.toUpperCase(), trusted]) {
      const answer = await registrar.post(each, theirs);
      assertRefused(answer, 409, 'conflict', 'name', `the domain ${each} is registered already`);
      assert.ok(!answer.text.includes(ours.id) && !answer.text.includes('another'), answer.text);
    }
  });

  it('of two that wait for one domain the first to prove it gets it, the other fails', async () => {
    const name = registrar.fresh();
    await theirs.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hooks' } });
    const [mine, other] = [await registrar.add(name), await registrar.add(name, theirs)];
    assert.notEqual(record(mine, 'OWNERSHIP').value, record(other, 'OWNERSHIP').value);
    registrar.publish(mine);
    assert.equal((await registrar.verify(mine.id)).status, 'verified');
    const lost = await registrar.get(other.id, theirs);
    assert.deepEqual([lost.status, lost.verified_at, lost.next_check_at], ['failed', null, null]);
    assert.match(String(record(lost, 'OWNERSHIP').error), /^another account has proved that it owns this domain/);
    assert.deepEqual((await registrar.told(theirs, 'domain.failed')).at(-1), {
      domainId: other.id,
      name,
      status: 'failed',
    });
    // Also with the right records: it is held.
    for (const { required, name: at, value } of other.records) if (required) dns.txt(at, value);
    assert.equal((await registrar.verify(other.id, theirs)).status, 'failed');
    assertRefused(await registrar.send(name, theirs), 403, 'domain_not_verified', 'from');
    assert.equal((await registrar.get(mine.id)).status, 'verified');
  });

  it('of many that prove one domain at the same time one gets it', async () => {
    const name = registrar.fresh();
    const organizations = await Promise.all(Array.from({ length: 5 }, () => service.organization()));
    const domains = await Promise.all(organizations.map((by) => registrar.add(name, by)));
    const tokens = domains.map((domain) => record(domain, 'OWNERSHIP').value);
    dns.txt(`_sendwright.${name}`, ...tokens);
    dns.txt(`sw1._domainkey.${name}`, record(domains[0] as Domain, 'DKIM').value);
    await service.pool.query(
      `UPDATE domains SET (dkim_public, dkim_key) = (SELECT dkim_public, dkim_key FROM domains WHERE id = $2) WHERE name = $1`,
      [name, domains[0]?.id],
    );
    await Promise.all(domains.map(({ id }, i) => registrar.verify(id, organizations[i])));
    const { rows } = await service.pool.query<{ status: string; n: number }>(
      'SELECT status, count(*)::int AS n FROM domains WHERE name = $1 GROUP BY status ORDER BY status',
      [name],
    );
    assert.deepEqual(rows, [
      { status: 'failed', n: 4 },
      { status: 'verified', n: 1 },
    ]);
  });

  it('one that is proved while another organization gets it fails', async () => {
    const mine = await registrar.add(registrar.fresh());
    registrar.publish(mine);
    const client = await service.pool.connect();
    try {
      await client.query('BEGIN');
      await insertDomain(client, newId('dm', Date.now()), theirs.id, mine.name, true);
      const checking = registrar.verify(mine.id);
      await eventually('it waits for the other one', async () => {
        const { rowCount } = await service.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return rowCount === 1;
      });
      await client.query('COMMIT');
      assert.equal((await checking).status, 'failed');
    } finally {
      client.release();
    }
  });

  it('somebody else’s token proves nothing', async () => {
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

  it('after its deletion another organization must prove it anew, with a token of its own', async () => {
    const name = registrar.fresh();
    const mine = await registrar.verified(name);
    assert.equal((await ours.call('DELETE', `/v1/domains/${mine.id}`)).status, 204);
    const next = await registrar.add(name, theirs);
    assert.equal(next.status, 'pending');
    // What proved it for us is still in DNS.
    assert.equal((await registrar.verify(next.id, theirs)).status, 'pending');
    registrar.publish(next);
    assert.equal((await registrar.verify(next.id, theirs)).status, 'verified');
    assertRefused(await registrar.send(name), 403, 'domain_not_found', 'from');
  });

  it('a token of an earlier registration proves nothing either', async () => {
    const name = registrar.fresh();
    const first = await registrar.verified(name);
    await ours.call('DELETE', `/v1/domains/${first.id}`);
    assert.equal((await registrar.verify((await registrar.add(name)).id)).status, 'pending');
  });

  it('a subdomain and its parent are proved each on its own, whoever has the other', async () => {
    const parent = registrar.fresh();
    await registrar.verified(parent);
    const below = await registrar.add(`mail.${parent}`, theirs);
    assert.equal((await registrar.verify(below.id, theirs)).status, 'pending');
    registrar.publish(below);
    assert.equal((await registrar.verify(below.id, theirs)).status, 'verified');
    assertRefused(await registrar.send(parent, theirs), 403, 'domain_not_found', 'from');

    const child = `mail.${registrar.fresh()}`;
    await registrar.verified(child);
    const above = await registrar.add(child.slice('mail.'.length), theirs);
    assert.equal((await registrar.verify(above.id, theirs)).status, 'pending');
    registrar.publish(above);
    assert.equal((await registrar.verify(above.id, theirs)).status, 'verified');
  });

  it('a domain taken on trust fails those that wait for it', async () => {
    const name = registrar.fresh();
    const waiting = await registrar.add(name, theirs);
    await ours.addDomain(name);
    assert.equal((await registrar.get(waiting.id, theirs)).status, 'failed');
  });
});
