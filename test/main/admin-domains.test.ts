import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { organization } from '../store/mail.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { command } from './command-line.ts';

interface Domain {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly records: { record: string; required: boolean; name: string; value: string }[];
}

describe('domain add, list, show, verify, remove', () => {
  let database: TestDatabase;
  let dns: DnsServer;
  let orgId: string;
  before(async () => {
    [database, dns] = await Promise.all([testDatabase(), startDnsServer()]);
    orgId = await organization(database.pool);
  });
  after(() => Promise.all([database.drop(), dns.close()]));

  function admin(action: string, ...more: string[]) {
    const settings = {
      DATABASE_URL: database.url,
      SECRET_KEY: 'a secret key for tests, and long enough',
      DNS_SERVERS: dns.address,
      SMTP_URL: 'smtp://smtp.example.net:25',
    };
    return command(['domain', action, '--organization', orgId, ...more], settings);
  }
  async function printed(action: string, ...more: string[]): Promise<unknown> {
    const { out, err } = await admin(action, ...more);
    assert.equal(err, '');
    return JSON.parse(out);
  }

  it('take a domain from its registration to its end', async () => {
    const name = ['--name', 'Hand.example.com'];
    const added = (await printed('add', ...name)) as Domain;
    assert.deepEqual([added.name, added.status], ['hand.example.com', 'pending']);
    const unproved = (await printed('verify', ...name)) as Domain;
    assert.equal(unproved.status, 'pending');
    for (const { required, name: at, value } of unproved.records) if (required) dns.txt(at, value);
    await database.pool.query('UPDATE domains SET asked_at = NULL');
    const proved = (await printed('verify', ...name)) as Domain;
    assert.equal(proved.status, 'verified');
    assert.deepEqual(
      proved.records.map(({ record }) => record),
      ['OWNERSHIP', 'DKIM', 'SPF', 'DMARC'],
    );
    assert.deepEqual(await printed('show', ...name), proved);
    const listed = (await printed('list')) as Domain[];
    assert.deepEqual(
      listed.map(({ name: each, status }) => [each, status]),
      [
        ['hand.example.com', 'verified'],
        ['acme.example', 'verified'],
      ],
    );
    assert.deepEqual(await printed('remove', ...name), { id: added.id });
    const gone = await admin('show', ...name);
    assert.deepEqual([gone.code, gone.err], [1, 'name: the organization has no domain hand.example.com\n']);
  });

  it('refuse a public suffix', async () => {
    const { code, err } = await admin('add', '--name', 'co.uk');
    assert.equal(code, 1);
    assert.match(err, /^name: co\.uk is a public suffix/);
  });
});
