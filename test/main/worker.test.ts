import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { findDomain } from '../../src/store/domains/domains.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { endChild } from '../support/end-child.ts';
import { eventually } from '../support/eventually.ts';
import { provided } from '../support/provided.ts';
import { WITHOUT_ENV_FILE } from '../support/without-env-file.ts';

const { pool, url } = await useDatabase();

test('a worker refuses a fleet beside a part of it', async (t) => {
  const worker = fork(join(provided('TEST_COMPILED'), 'src/main/worker.mjs'), ['--fleets', 'email,email-groups'], {
    cwd: WITHOUT_ENV_FILE,
    execArgv: [],
    env: { PATH: process.env['PATH'], DATABASE_URL: url, SECRET_KEY: 'a secret key for tests, and long enough' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  t.after(() => endChild(worker));
  const [written, exit] = await Promise.all([text(worker.stderr as Readable), once(worker, 'exit')]);
  assert.deepEqual(exit, [1, null]);
  assert.match(written, /--fleets email,email-groups: email contains email-groups; name one of them/);
});

test('a worker of the fleet upkeep checks domains and stops, also while Temporal is away', async (t) => {
  const dns = await startDnsServer();
  t.after(() => dns.close());
  const home = await mkdtemp(join(tmpdir(), 'sendwright-'));
  t.after(() => rm(home, { recursive: true }));
  const { id, name } = await registerDomainForOperator(pool, await organization(pool), 'example.com', false);
  const worker = fork(join(provided('TEST_COMPILED'), 'src/main/worker.mjs'), ['--fleets', 'upkeep'], {
    cwd: WITHOUT_ENV_FILE,
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: url,
      DNS_SERVERS: dns.address,
      LOG_LEVEL: 'silent',
      SENDWRIGHT_HOME: home,
      SECRET_KEY: 'a secret key for tests, and long enough',
      TEMPORAL_ADDRESS: '127.0.0.1:1',
    },
  });
  t.after(() => endChild(worker));
  await eventually('the domain is checked', async () => (await findDomain(pool, null, id))?.last_checked_at ?? false);
  assert.ok(dns.questions.some((question) => question.endsWith(`_sendwright.${name}`)));
  worker.kill('SIGTERM');
  assert.deepEqual(await once(worker, 'exit'), [0, null]);
});
