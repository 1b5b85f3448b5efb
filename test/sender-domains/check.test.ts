import assert from 'node:assert/strict';
import { after, beforeEach, describe, test } from 'node:test';
import { registerDomainForOperator, checkDomain, showDomain } from '../../src/accounts/domains.ts';
import { startDomainChecks } from '../../src/sender-domains/background-checks.ts';
import { makeDns } from '../../src/providers/dns.ts';
import type { SenderDomainDeps } from '../../src/sender-domains/deps.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { senderDomains } from './deps.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const { pool } = await useDatabase(10);
const dns = await startDnsServer();
after(() => dns.close());
const ours = await organization(pool);
const deps: SenderDomainDeps = senderDomains(pool, { dns: makeDns([dns.address], 3_000) });
beforeEach(() => dns.fail(undefined));

let count = 0;
const intake = () => ({ ...deps, wakeRelay: () => undefined });
const show = (id: string) => showDomain(intake(), ours, id);
/** Checks the domains that are due, as a worker does. */
const checkDue = (by = deps) => startDomainChecks(by)();

/** Seconds from the latest check of a domain to the next one; null when it is not checked again. */
async function intervalOf(id: string): Promise<number | null> {
  const { last_checked_at: last, next_check_at: next } = await show(id);
  return next === null ? null : Math.round((Date.parse(next) - Date.parse(String(last))) / 1_000);
}

/** A pending domain that has been checked, so that it has its records. */
async function added(name = `d${++count}.example.com`): Promise<string> {
  const { id } = await registerDomainForOperator(pool, ours, name, false);
  await checkDue();
  return id;
}

async function publish(id: string): Promise<void> {
  for (const { required, name, value } of (await show(id)).records) if (required) dns.txt(name, value);
}

async function nameOf(id: string, kind: string): Promise<string> {
  const found = (await show(id)).records.find(({ record }) => record === kind);
  return found?.name ?? assert.fail(`no record ${kind}`);
}

/** Lets time pass for a domain. */
async function makeOlder(id: string, milliseconds: number): Promise<void> {
  await pool.query(
    `UPDATE domains SET tried_since = tried_since - $2 * interval '1 ms', next_check_at = next_check_at - $2 * interval '1 ms'
     WHERE id = $1`,
    [id, milliseconds],
  );
}

async function verified(): Promise<string> {
  const id = await added();
  await publish(id);
  await makeOlder(id, HOUR);
  await checkDue();
  assert.equal((await show(id)).status, 'verified');
  return id;
}

describe('a background check', () => {
  test('happens when the domain is due, and not before', async () => {
    const { id } = await registerDomainForOperator(pool, ours, `d${++count}.example.com`, false);
    await checkDue();
    assert.equal(await intervalOf(id), 60);
    const asked = dns.questions.length;
    await checkDue();
    assert.equal(dns.questions.length, asked);
    await makeOlder(id, 60_000);
    await checkDue();
    assert.ok(dns.questions.length > asked, 'DNS was asked');
    assert.equal(await intervalOf(id), 120);
  });

  test('verifies a domain with its records, which is then checked daily', async () => {
    assert.equal(await intervalOf(await verified()), DAY / 1_000);
  });

  test('fails a domain after 72 hours, which is then not checked', async () => {
    const id = await added();
    await makeOlder(id, 72 * HOUR);
    await checkDue();
    const { status, next_check_at: next } = await show(id);
    assert.deepEqual([status, next], ['failed', null]);
  });

  for (const kind of ['OWNERSHIP', 'DKIM']) {
    test(`fails a domain if ${kind} is missing for three days, but not while a name server fails`, async () => {
      const id = await verified();
      const name = await nameOf(id, kind);
      dns.fail('SERVFAIL', name);
      for (let day = 0; day < 5; day++) {
        await makeOlder(id, DAY);
        await checkDue();
      }
      assert.equal((await show(id)).status, 'verified');
      dns.fail(undefined, name);
      dns.clear(name);
      for (const status of ['verified', 'verified', 'failed']) {
        await makeOlder(id, DAY);
        await checkDue();
        assert.equal((await show(id)).status, status);
      }
      const { verified_at: at, records } = await show(id);
      assert.equal(at, null);
      const lost = records.find(({ record }) => record === kind);
      assert.deepEqual([lost?.status, lost?.found], ['pending', []]);
    });
  }

  test('fails no domain for a record that is required since it was verified', async () => {
    const without = { ...deps, senders: { postmark: false, smtpHost: null } };
    const { id } = await registerDomainForOperator(pool, ours, `d${++count}.example.com`, false);
    const bare = async () => (await showDomain(without, ours, id)).records;
    for (const { required, name, value } of await bare()) if (required) dns.txt(name, value);
    await checkDue(without);
    assert.equal((await show(id)).status, 'verified');
    // From now on email leaves by SMTP too.
    for (let day = 0; day < 5; day++) {
      await makeOlder(id, DAY);
      await checkDue();
    }
    const { status, records } = await show(id);
    assert.equal(status, 'verified');
    assert.equal(records.find(({ record }) => record === 'DKIM')?.status, 'pending');
  });

  test('skips trusted domains', async () => {
    const { id } = await registerDomainForOperator(pool, ours, `d${++count}.example.com`, true);
    await checkDue();
    assert.equal((await show(id)).last_checked_at, null);
  });
});

describe('the record of a domain', () => {
  const errorOf = async (id: string, kind: string) => {
    await checkDomain(intake(), ours, id);
    return (await show(id)).records.find(({ record }) => record === kind);
  };

  test('reports a name that contains the domain twice', async () => {
    for (const [name, zone, host] of [
      [`d${++count}.example.com`, 'example.com', `_sendwright.d${count}`],
      ['apex.example', 'apex.example', '_sendwright'],
    ] as const) {
      const id = await added(name);
      const value = (await show(id)).records[0]?.value ?? '';
      dns.txt(`_sendwright.${name}.${zone}`, value);
      const record = await errorOf(id, 'OWNERSHIP');
      assert.equal(record?.status, 'failed');
      assert.match(String(record.error), new RegExp(`the domain itself; enter only ${host} as the name$`));
    }
  });

  test('is missing if a wildcard record answers for the name that contains the domain twice', async () => {
    const id = await added();
    for (const { name } of (await show(id)).records) dns.txt(`${name}.example.com`, 'v=spf1 -all');
    for (const kind of ['OWNERSHIP', 'DKIM', 'SPF', 'DMARC']) {
      await pool.query('UPDATE domains SET asked_at = NULL');
      const record = await errorOf(id, kind);
      assert.equal(record?.status, 'pending', kind);
      assert.doesNotMatch(String(record.error), /the domain itself/);
    }
  });

  test('has a DMARC policy of its own or of the parent domain', async () => {
    const id = await added('a.b.policies.example');
    dns.txt('_dmarc.policies.example', 'v=DMARC1; p=reject');
    assert.deepEqual((await errorOf(id, 'DMARC'))?.found, ['v=DMARC1; p=reject']);
    dns.txt('_dmarc.a.b.policies.example', 'v=DMARC1; p=none');
    await pool.query('UPDATE domains SET asked_at = NULL');
    assert.deepEqual((await errorOf(id, 'DMARC'))?.found, ['v=DMARC1; p=none']);
  });
});
