import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import getPort from 'get-port';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { findDomain } from '../../src/store/domains/domains.ts';
import { queryOneValue } from '../../src/store/postgres/pool.ts';
import { organization } from '../store/mail.ts';
import { testDatabase, useDatabase } from '../support/database.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { endChild } from '../support/end-child.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { forkWorker, startCommand } from './command-line.ts';

const { pool, url } = await useDatabase();

test('a worker refuses a fleet beside a part of it', async (t) => {
  const args = ['--fleets', 'email,email-groups'];
  const { child, ended, err } = startCommand(args, { DATABASE_URL: url, SECRET_KEY }, 'worker');
  t.after(() => endChild(child));
  assert.equal(await ended, 1);
  assert.match(err(), /--fleets email,email-groups: email contains email-groups; name one of them/);
});

/** Starts a worker of the fleet `webhooks`. @returns the status of its `/readyz` */
async function startWebhooksWorker(t: TestContext, databaseUrl: string): Promise<() => Promise<number>> {
  const port = await getPort();
  const worker = forkWorker(t, 'webhooks', {
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: 'silent',
    METRICS_PORT: String(port),
    SECRET_KEY,
  });
  await once(worker, 'message');
  return async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
}

describe('a worker is ready only', { concurrency: true }, () => {
  test('while it reaches Postgres', async (t) => {
    const readyz = await startWebhooksWorker(t, 'postgres://u@127.0.0.1:1/d');
    assert.equal(await readyz(), 503);
  });

  test('with a database that has all migrations', async (t) => {
    const { pool: own, url: ownUrl, drop } = await testDatabase();
    t.after(drop);
    const latest = await queryOneValue<string>(own, 'SELECT max(name) FROM migrations');
    await own.query('DELETE FROM migrations WHERE name = $1', [latest]);
    const readyz = await startWebhooksWorker(t, ownUrl);
    assert.equal(await readyz(), 503);
    await own.query('INSERT INTO migrations (name) VALUES ($1)', [latest]);
    await eventually('it is ready', async () => (await readyz()) === 200);
  });
});

test('a worker of the fleet upkeep checks domains and stops, also while Temporal is away', async (t) => {
  const dns = await startDnsServer();
  t.after(() => dns.close());
  const home = await temporaryFolder(t);
  const { id, name } = await registerDomainForOperator(pool, await organization(pool), 'example.com', false);
  const worker = forkWorker(t, 'upkeep', {
    DATABASE_URL: url,
    DNS_SERVERS: dns.address,
    LOG_LEVEL: 'silent',
    SENDWRIGHT_HOME: home,
    SECRET_KEY,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
  });
  await eventually('the domain is checked', async () => (await findDomain(pool, null, id))?.last_checked_at ?? false);
  assert.ok(dns.questions.some((question) => question.endsWith(`_sendwright.${name}`)));
  worker.kill('SIGTERM');
  assert.deepEqual(await once(worker, 'exit'), [0, null]);
});
