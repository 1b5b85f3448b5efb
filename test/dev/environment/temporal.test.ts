import assert from 'node:assert/strict';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  checkTemporal,
  setRetention,
  temporalDatabase,
  temporalPart,
  withoutTemporal,
} from '../../../dev/environment/temporal.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { provided } from '../../support/provided.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { testNamespace } from '../../support/temporal.ts';

test('a database whose server never served is created again, and one that did is kept', async (t) => {
  const folder = join(await temporaryFolder(t), 'temporal');
  const first = await temporalDatabase(folder);
  await writeFile(first.path, 'half a schema');

  const second = await temporalDatabase(folder);
  assert.deepEqual(await readdir(folder), []);
  await writeFile(second.path, 'whole');
  await assert.rejects(second.complete(() => Promise.reject(new Error('no'))));
  let finished = 0;
  const finish = async () => {
    finished++;
  };
  await second.complete(finish);

  const third = await temporalDatabase(folder);
  await third.complete(finish);
  assert.deepEqual((await readdir(folder)).sort(), ['complete', 'temporal.db']);
  assert.equal(finished, 1);
});

test('no other user of the machine can read the database', async (t) => {
  const folder = join(await temporaryFolder(t), 'temporal');
  await temporalDatabase(folder);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
});

test('setRetention sets how long a namespace keeps closed workflows', async (t) => {
  const { address, namespace, connection, close } = await testNamespace();
  t.after(close);
  await setRetention(provided('TEMPORAL_CLI_PATH'), address, namespace, '168h');
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  assert.equal(Number(config?.workflowExecutionRetentionTtl?.seconds), 168 * 3_600);
});

test('a server of TEMPORAL_ADDRESS that does not answer is reported with the setting', async () => {
  await checkTemporal({ TEMPORAL_ADDRESS: provided('TEST_TEMPORAL_ADDRESS') });
  await assert.rejects(checkTemporal({ TEMPORAL_ADDRESS: '127.0.0.1:1' }), (error: Error) => {
    assert.ok(error instanceof Problem);
    assert.match(
      error.message,
      /^The Temporal server that TEMPORAL_ADDRESS names \(127\.0\.0\.1:1\) cannot be used: ./,
    );
    return true;
  });
});

test('the server is identified by its database and gets no settings of another server', () => {
  const { args, mark } = temporalPart(
    { cli: '/bin/t', port: 1, uiPort: 2, database: '/d/t.db', namespaces: ['n'] },
    'log',
  );
  assert.ok(args.join(' ').includes(mark) && mark === '/d/t.db');
  assert.equal(temporalPart({ cli: '/bin/t', port: 1, namespaces: ['n'] }, 'log').mark, '/bin/t');
  assert.deepEqual(withoutTemporal({ TEMPORAL_API_KEY: 'k', TEMPORAL_TLS: 'true', PATH: '/bin' }), { PATH: '/bin' });
});
