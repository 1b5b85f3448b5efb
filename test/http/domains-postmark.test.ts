import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { AccountClient } from 'postmark';
import { pino } from 'pino';
import { makeDomainUpkeep } from '../../src/upkeep/domains.ts';
import { dueUnusedDomains, endUnusedDomain, saveProviderDomain } from '../../src/store/domains/provider-domains.ts';
import { startDomainChecks } from '../../src/sender-domains/background-checks.ts';
import { makeDns } from '../../src/providers/dns.ts';
import { postmarkDomains } from '../../src/providers/postmark/domains.ts';
import { startSimulator } from '../../dev/simulator/simulator.ts';
import { senderDomains } from '../sender-domains/deps.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { type Domain, record as find } from './registrar.ts';
import { startService, useService } from './service.ts';

const ACCOUNT = 'account-token';
const log = pino({ level: 'silent' });

const dns = await startDnsServer();
after(() => dns.close());
const resolver = makeDns([dns.address], 3_000);
const simulator = await startSimulator({
  ...{ host: '127.0.0.1', port: 0, smtpPort: 0, folder: null, serverToken: null, deliveryCallback: null, log },
  accountToken: ACCOUNT,
  dns: resolver,
});
after(() => simulator.close());
const { host } = new URL(simulator.postmarkUrl);
const account = new AccountClient(ACCOUNT, { useHttps: false, requestHost: host, timeout: 30 });
const postmark = postmarkDomains(ACCOUNT, { baseUrl: simulator.postmarkUrl, timeoutSeconds: 30 });
/** Postmark while it is down. */
const unreachablePostmark = postmarkDomains(ACCOUNT, { baseUrl: 'http://127.0.0.1:9', timeoutSeconds: 1 });
const deps = { dns: resolver, senders: { postmark: true, smtpHost: null }, postmark };
const service = await useService({}, deps);
const [ours, theirs] = [await service.organization(), await service.organization()];

let count = 0;
const fresh = () => `p${++count}.example.com`;
async function ask(method: string, path: string, by = ours, json?: unknown): Promise<Domain> {
  const answer = await by.call(method, `/v1/domains${path}`, { json });
  assert.ok(answer.status < 300, answer.text);
  return answer.body as Domain;
}
const add = (name: string, by = ours) => ask('POST', '', by, { name });
async function verify(id: string, by = ours): Promise<Domain> {
  await service.pool.query('UPDATE domains SET asked_at = NULL WHERE id = $1', [id]);
  return ask('POST', `/${id}/verify`, by);
}
const remove = (id: string, by = ours) => ask('DELETE', `/${id}`, by);
function publish(domain: Domain, ...kinds: string[]): void {
  for (const { record, type, name, value } of domain.records) {
    if (!kinds.includes(record)) continue;
    if (type === 'CNAME') dns.cname(name, value);
    else dns.txt(name, value);
  }
}
const kindsOf = ({ records }: Domain) => records.map(({ record }) => record);
const atPostmark = async () => (await account.getDomains({ count: 500, offset: 0 })).Domains;
const named = async (name: string) => (await atPostmark()).filter(({ Name }) => Name === name);
const upkeep = (removeFromPostmark = postmark.remove) =>
  makeDomainUpkeep({ pool: service.pool, removeFromPostmark, log });

describe('a domain with Postmark', () => {
  it('is created at Postmark, whose DKIM and return-path records are required', async () => {
    const name = fresh();
    const domain = await add(name);
    const [there] = await named(name);
    assert.ok(there, 'Postmark has it');
    assert.deepEqual(
      domain.records.map(({ record, type, required }) => `${record} ${type} ${required}`),
      ['OWNERSHIP TXT true', 'DKIM TXT true', 'RETURN_PATH CNAME false', 'SPF TXT false', 'DMARC TXT false'],
    );
    const details = await account.getDomain(there.ID);
    const [dkim, path] = [find(domain, 'DKIM'), find(domain, 'RETURN_PATH')];
    assert.deepEqual([dkim.name, dkim.value], [details.DKIMPendingHost, details.DKIMPendingTextValue]);
    assert.deepEqual([path.name, path.value], [`pm-bounces.${name}`, 'pm.mtasv.net']);
  });

  it('is verified when its ownership is proved and Postmark has found its key', async () => {
    const domain = await add(fresh());
    publish(domain, 'DKIM', 'RETURN_PATH');
    const half = await verify(domain.id);
    assert.equal(half.status, 'pending');
    const [unseen] = await named(domain.name);
    assert.equal(unseen?.DKIMVerified, false, 'Postmark is not queried before the ownership is proved');
    assert.equal(find(half, 'DKIM').error, 'the record exists, but Postmark has not found it yet');

    publish(domain, 'OWNERSHIP');
    const done = await verify(domain.id);
    assert.equal(done.status, 'verified');
    const [seen] = await named(domain.name);
    assert.deepEqual([seen?.DKIMVerified, seen?.ReturnPathDomainVerified], [true, true]);
    for (const kind of ['OWNERSHIP', 'DKIM', 'RETURN_PATH']) {
      assert.deepEqual([find(done, kind).status, find(done, kind).error], ['verified', null], kind);
    }
  });

  it('must be proved by each organization although Postmark has verified it', async () => {
    const name = fresh();
    const mine = await add(name);
    publish(mine, 'OWNERSHIP', 'DKIM');
    assert.equal((await verify(mine.id)).status, 'verified');
    await remove(mine.id);
    const next = await add(name, theirs);
    assert.equal((await named(name)).length, 1);
    assert.equal((await verify(next.id, theirs)).status, 'pending');
    publish(next, 'OWNERSHIP');
    assert.equal((await verify(next.id, theirs)).status, 'verified');
  });

  it('is created again if Postmark has deleted it', async () => {
    const domain = await add(fresh());
    publish(domain, 'OWNERSHIP', 'DKIM');
    await verify(domain.id);
    const [there] = await named(domain.name);
    await account.deleteDomain(there?.ID ?? 0);
    const checked = await verify(domain.id);
    assert.equal(checked.status, 'verified');
    assert.notEqual(find(checked, 'DKIM').name, find(domain, 'DKIM').name);
    assert.equal(find(checked, 'DKIM').status, 'pending');
    publish(checked, 'DKIM');
    assert.equal(find(await verify(domain.id), 'DKIM').status, 'verified');
  });

  it('is registered while Postmark is down, and created there later', async (t) => {
    const alone = await startService({}, { ...deps, postmark: unreachablePostmark });
    t.after(alone.close);
    const org = await alone.organization();
    const domain = await add(fresh(), org);
    assert.deepEqual(kindsOf(domain), ['OWNERSHIP', 'SPF', 'DMARC']);
    publish(domain, 'OWNERSHIP');
    const early = await ask('POST', `/${domain.id}/verify`, org);
    assert.equal(early.status, 'pending', 'the records of Postmark are unknown');
    await startDomainChecks(senderDomains(alone.pool, deps))();
    assert.ok(find(await ask('GET', `/${domain.id}`, org), 'DKIM').value, 'now it has a key');
    assert.equal((await named(domain.name)).length, 1);
  });
});

describe('a domain that is deleted', () => {
  it('is deleted at Postmark when no organization has it', async () => {
    const name = fresh();
    const [mine, other] = [await add(name), await add(name, theirs)];
    await remove(mine.id);
    await upkeep().clearProviderDomains();
    assert.equal((await named(name)).length, 1, 'another organization still has it');
    await remove(other.id, theirs);
    const { rows } = await service.pool.query(`SELECT FROM outbox WHERE message_id = 'clearProviderDomains'`);
    assert.ok(rows.length > 0, 'the relay is notified');
    assert.ok((await upkeep().clearProviderDomains()).done >= 1);
    assert.equal((await named(name)).length, 0);
    assert.deepEqual(await upkeep().clearProviderDomains(), { done: 0, next: null });
  });

  it('is deleted at Postmark also if its last organization deletes it during a step', async () => {
    const name = fresh();
    const [mine, other] = [await add(name), await add(name, theirs)];
    await remove(mine.id);
    const [read] = await dueUnusedDomains(service.pool, 100);
    assert.ok(read?.name === name && read.is_used);
    await remove(other.id, theirs);
    await endUnusedDomain(service.pool, read);
    assert.equal((await upkeep().clearProviderDomains()).done, 1);
    assert.equal((await named(name)).length, 0);
  });

  it('is deleted at Postmark also if it was deleted here before Postmark answered', async () => {
    const added = await postmark.add(fresh());
    const name = `p${count}.example.com`;
    await saveProviderDomain(service.pool, name, added, added.isCreated);
    // Postgres rounds the time to milliseconds, maybe up.
    await service.pool.query(`UPDATE provider_domains SET retry_at = now() - interval '1 second' WHERE name = $1`, [
      name,
    ]);
    assert.equal((await upkeep().clearProviderDomains()).done, 1);
    assert.equal((await named(name)).length, 0);
  });

  it('stays at Postmark if it is registered again while another one is deleted there', async () => {
    const [first, second] = [await add(fresh()), await add(fresh())];
    await remove(first.id);
    await remove(second.id);
    let again: Domain | undefined;
    await upkeep(async (id) => {
      again ??= await add(second.name);
      await postmark.remove(id);
    }).clearProviderDomains();
    assert.deepEqual([(await named(first.name)).length, (await named(second.name)).length], [0, 1]);
    await remove(again?.id ?? '');
    await upkeep().clearProviderDomains();
  });

  it('stays at Postmark if it was there before', async () => {
    const name = fresh();
    await account.createDomain({ Name: name });
    const domain = await add(name);
    assert.deepEqual(kindsOf(domain), ['OWNERSHIP', 'DKIM', 'SPF', 'DMARC']);
    await remove(domain.id);
    assert.equal((await upkeep().clearProviderDomains()).done, 1);
    assert.equal((await named(name)).length, 1);
  });

  it('is deleted at Postmark later if that is down', async () => {
    const { id, name } = await add(fresh());
    await remove(id);
    assert.deepEqual(await upkeep(unreachablePostmark.remove).clearProviderDomains(), { done: 0, next: null });
    assert.deepEqual(await upkeep().clearProviderDomains(), { done: 0, next: null }, 'the retry is not due');
    await service.pool.query(`UPDATE provider_domains SET retry_at = now() - interval '1 second'`);
    assert.deepEqual(await upkeep().clearProviderDomains(), { done: 1, next: null });
    assert.equal((await named(name)).length, 0);
  });
});

describe('Postmark’s account API', () => {
  it('finds a domain behind 500 others', async () => {
    for (let i = 0; i < 501; i++) await account.createDomain({ Name: `many${i}.example.org` });
    const { isCreated, id } = await postmark.add('many500.example.org');
    assert.equal(isCreated, false);
    assert.deepEqual((await account.getDomain(id)).Name, 'many500.example.org');
  });

  it('accepts the deletion and the check of a missing domain', async () => {
    await postmark.remove(1);
    assert.equal(await postmark.verify(1), undefined);
  });
});
