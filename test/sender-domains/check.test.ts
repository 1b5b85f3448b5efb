import assert from 'node:assert/strict';
import { after, beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { makeDomainActivities } from '../../activities/domains.ts';
import { makeDomainUpkeep } from '../../src/upkeep/domains.ts';
import { addDomain, checkDomain, removeDomain, showDomain } from '../../src/accounts/domains.ts';
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
const watch = (id: string) => makeDomainActivities(deps).watchDomain({ id });

/** A pending domain that has been looked at once, so that it has its records. */
async function added(name = `d${++count}.example.com`): Promise<string> {
  const { id } = await addDomain(pool, ours, name, false);
  await watch(id);
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
async function age(id: string, milliseconds: number): Promise<void> {
  await pool.query(
    `UPDATE domains SET tried_since = tried_since - $2 * interval '1 ms', next_check_at = next_check_at - $2 * interval '1 ms'
     WHERE id = $1`,
    [id, milliseconds],
  );
}

async function verified(): Promise<string> {
  const id = await added();
  await publish(id);
  await age(id, HOUR);
  await watch(id);
  assert.equal((await show(id)).status, 'verified');
  return id;
}

describe('a domain that is watched', () => {
  test('is checked when it is due, and not before', async () => {
    const { id } = await addDomain(pool, ours, `d${++count}.example.com`, false);
    const first = await watch(id);
    assert.ok(first.state === 'asleep' && first.inMs > 30_000 && first.inMs <= 60_000, JSON.stringify(first));
    const asked = dns.questions.length;
    await watch(id);
    assert.equal(dns.questions.length, asked);
    await age(id, 60_000);
    const second = await watch(id);
    assert.ok(dns.questions.length > asked, 'DNS was asked');
    assert.ok(second.state === 'asleep' && second.inMs > 80_000 && second.inMs <= 120_000, JSON.stringify(second));
  });

  test('is verified when its records are there, then checked daily', async () => {
    const id = await added();
    await publish(id);
    await age(id, HOUR);
    const watched = await watch(id);
    assert.ok(watched.state === 'asleep' && Math.abs(watched.inMs - DAY) < 60_000, JSON.stringify(watched));
    assert.equal((await show(id)).status, 'verified');
  });

  test('fails after 72 hours and is no longer watched', async () => {
    const id = await added();
    await age(id, 72 * HOUR);
    assert.deepEqual(await watch(id), { state: 'closed' });
    const { status, next_check_at: next } = await show(id);
    assert.deepEqual([status, next], ['failed', null]);
    assert.deepEqual(await watch(id), { state: 'closed' });
  });

  for (const kind of ['OWNERSHIP', 'DKIM']) {
    test(`fails if ${kind} is missing for three days, but not while a name server fails`, async () => {
      const id = await verified();
      const name = await nameOf(id, kind);
      dns.fail('SERVFAIL', name);
      for (let day = 0; day < 5; day++) {
        await age(id, DAY);
        assert.equal((await watch(id)).state, 'asleep');
      }
      assert.equal((await show(id)).status, 'verified');
      dns.fail(undefined, name);
      dns.clear(name);
      for (const status of ['verified', 'verified', 'failed']) {
        await age(id, DAY);
        await watch(id);
        assert.equal((await show(id)).status, status);
      }
      const { verified_at: at, records } = await show(id);
      assert.equal(at, null);
      const lost = records.find(({ record }) => record === kind);
      assert.deepEqual([lost?.status, lost?.found], ['pending', []]);
    });
  }

  test('does not fail for a record that is required since it was verified', async () => {
    const without = { ...deps, senders: { postmark: false, smtpHost: null } };
    const { id } = await addDomain(pool, ours, `d${++count}.example.com`, false);
    const bare = async () => (await showDomain(without, ours, id)).records;
    for (const { required, name, value } of await bare()) if (required) dns.txt(name, value);
    await makeDomainActivities(without).watchDomain({ id });
    assert.equal((await show(id)).status, 'verified');
    // From now on email leaves by SMTP too.
    for (let day = 0; day < 5; day++) {
      await age(id, DAY);
      await watch(id);
    }
    const { status, records } = await show(id);
    assert.equal(status, 'verified');
    assert.equal(records.find(({ record }) => record === 'DKIM')?.status, 'pending');
  });

  test('is not watched if it is trusted or deleted', async () => {
    const trusted = await addDomain(pool, ours, `d${++count}.example.com`, true);
    assert.deepEqual(await watch(trusted.id), { state: 'closed' });
    const id = await added();
    await removeDomain({ pool, wakeRelay: () => undefined }, ours, id);
    assert.deepEqual(await watch(id), { state: 'closed' });
  });

  test('is closed if it is deleted during a lookup', async () => {
    const id = await added();
    await age(id, HOUR);
    const slow: SenderDomainDeps['dns'] = {
      ...deps.dns,
      txt: async (name) => {
        await removeDomain({ pool, wakeRelay: () => undefined }, ours, id).catch(() => undefined);
        return deps.dns.txt(name);
      },
    };
    assert.deepEqual(await makeDomainActivities({ ...deps, dns: slow }).watchDomain({ id }), { state: 'closed' });
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

  test('has a DMARC policy of its own or of the parent domain', async () => {
    const id = await added('a.b.policies.example');
    dns.txt('_dmarc.policies.example', 'v=DMARC1; p=reject');
    assert.deepEqual((await errorOf(id, 'DMARC'))?.found, ['v=DMARC1; p=reject']);
    dns.txt('_dmarc.a.b.policies.example', 'v=DMARC1; p=none');
    await pool.query('UPDATE domains SET asked_at = NULL');
    assert.deepEqual((await errorOf(id, 'DMARC'))?.found, ['v=DMARC1; p=none']);
  });
});

describe('a domain whose workflow was lost', () => {
  test('is put back into the outbox once', async () => {
    await pool.query('DELETE FROM outbox');
    await pool.query('UPDATE domains SET next_check_at = NULL');
    const [late, soon] = [await added(), await added()];
    await pool.query('DELETE FROM outbox');
    await age(late, HOUR);
    const chores = makeDomainUpkeep({ pool, removeFromPostmark: undefined, log: pino({ level: 'silent' }) });
    assert.deepEqual(await chores.wakeDomains(), { done: 1, next: null });
    assert.deepEqual(await chores.wakeDomains(), { done: 0, next: null });
    const { rows } = await pool.query(`SELECT message_id FROM outbox WHERE action = 'domain'`);
    assert.deepEqual(rows, [{ message_id: late }]);
    assert.notEqual(soon, late);
  });
});
