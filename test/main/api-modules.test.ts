import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApi } from '../http/api-process.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

const { url: DATABASE_URL } = await useDatabase();

test('the API starts without the bundler of workflow code and without Twilio’s SDK', async (t) => {
  // At its end, Node lists the scripts that each thread has loaded there.
  const coverage = await temporaryFolder(t);
  const api = await startApi({ DATABASE_URL, LOG_LEVEL: 'silent', NODE_V8_COVERAGE: coverage });
  assert.deepEqual(await api.end(), [0, null], api.printed());
  const reports = await Promise.all((await readdir(coverage)).map((name) => readFile(join(coverage, name), 'utf8')));
  const scripts = reports
    .flatMap((text) => (JSON.parse(text) as { result: { url: string }[] }).result)
    .map(({ url }) => url.replace(/^.*\/node_modules\//, ''));
  const loaded = (start: string) => scripts.filter((script) => script.startsWith(start));
  assert.ok(loaded('@temporalio/worker/').includes('@temporalio/worker/lib/connection.js'), 'the list is complete');
  assert.deepEqual(['@temporalio/worker/lib/index.js', 'webpack/', 'memfs/', 'rxjs/'].flatMap(loaded), []);
  assert.deepEqual(loaded('twilio/'), ['twilio/lib/webhooks/webhooks.js']);
});
