import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { assertFailed, assertMisused, command, printed } from './command-line.ts';

interface Domain {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly records: { record: string; required: boolean; name: string; value: string }[];
}

const database = await useDatabase();
const dns = await startDnsServer();
after(() => dns.close());
const orgId = await organization(database.pool);
const env = {
  DATABASE_URL: database.url,
  SECRET_KEY,
  DNS_SERVERS: dns.address,
  SMTP_URL: 'smtp://smtp.example.net:25',
};
const of = ['--organization', orgId];
const printedOf = <T>(action: string, ...more: string[]) => printed<T>(['domain', action, ...of, ...more], env);

describe('domain add, list, show, verify and remove', () => {
  it('take a domain from registration to removal', async () => {
    const name = ['--name', 'Hand.example.com'];
    const added = await printedOf<Domain>('add', ...name);
    assert.deepEqual([added.name, added.status], ['hand.example.com', 'pending']);
    const unproved = await printedOf<Domain>('verify', ...name);
    assert.equal(unproved.status, 'pending');
    for (const { required, name: at, value } of unproved.records) if (required) dns.txt(at, value);
    await database.pool.query('UPDATE domains SET asked_at = NULL');
    const proved = await printedOf<Domain>('verify', ...name);
    assert.equal(proved.status, 'verified');
    assert.deepEqual(
      proved.records.map(({ record }) => record),
      ['OWNERSHIP', 'DKIM', 'SPF', 'DMARC'],
    );
    assert.deepEqual(await printedOf('show', ...name), proved);
    const listed = await printedOf<Domain[]>('list');
    assert.deepEqual(
      listed.map(({ name: each, status }) => [each, status]),
      [
        ['hand.example.com', 'verified'],
        ['acme.example', 'verified'],
      ],
    );
    assert.deepEqual(await printedOf('remove', ...name), { id: added.id });
    const removed = await command(['domain', 'show', ...of, ...name], env);
    assertFailed(removed, 'name: the organization has no domain hand.example.com');
  });

  it('switch tracking, which needs PUBLIC_URL for email by SMTP', async () => {
    const name = ['--name', 'acme.example'];
    const both = ['--opens', 'on', '--clicks', 'on'];
    assertFailed(await command(['domain', 'tracking', ...of, ...name, ...both], env), /PUBLIC_URL is not set/);
    const withUrl = { ...env, PUBLIC_URL: 'https://mail.example.com' };
    const track = (...more: string[]) =>
      printed<{ open_tracking: boolean; click_tracking: boolean }>(
        ['domain', 'tracking', ...of, ...name, ...more],
        withUrl,
      );
    const { open_tracking: opens, click_tracking: clicks } = await track(...both);
    assert.deepEqual([opens, clicks], [true, true]);
    const after = await track('--opens', 'off');
    assert.deepEqual([after.open_tracking, after.click_tracking], [false, true]);
  });

  it('refuse tracking without a switch', async () => {
    const args = ['domain', 'tracking', ...of, '--name', 'acme.example'];
    await assertMisused(args, '--opens or --clicks is missing', 'domain tracking', env);
  });

  it('use the providers and keys of the npm start that owns the database', async (t) => {
    const home = await temporaryFolder(t);
    const { DATABASE_URL, ...settings } = env;
    await writeFile(join(home, 'dev.json'), JSON.stringify({ database_url: DATABASE_URL }));
    await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
    const name = ['--name', 'beside.example.com'];
    const run = async (action: string, more: Record<string, string> = {}) => {
      const own = { SENDWRIGHT_HOME: home, ...more };
      const { records } = await printed<Domain>(['domain', action, ...of, ...name], own);
      return records.map(({ record, value }) => (record === 'SPF' ? value : record));
    };
    const spf = 'v=spf1 a:smtp.example.net ~all';
    assert.deepEqual(await run('add'), ['OWNERSHIP', spf, 'DMARC']);
    const all = ['OWNERSHIP', 'DKIM', spf, 'DMARC'];
    assert.deepEqual(await run('verify'), all);
    assert.deepEqual(await run('show', { DATABASE_URL, SMTP_URL: '' }), all);
    const another = `${DATABASE_URL}?application_name=x`;
    for (const more of [{ DATABASE_URL: another }, { EMAIL_PROVIDERS: 'postmark' }]) {
      assert.deepEqual(await run('show', more), ['OWNERSHIP', 'DKIM', 'v=spf1 ~all', 'DMARC']);
    }
  });

  it('refuse a public suffix', async () => {
    assertFailed(await command(['domain', 'add', ...of, '--name', 'co.uk'], env), /^name: co\.uk is a public suffix/);
  });
});
