import assert from 'node:assert/strict';
import { test } from 'node:test';
import getPort from 'get-port';
import { openMetrics, serveMetrics } from '../../src/main/wiring/metrics.ts';
import { recordingServer } from '../providers/servers.ts';

const pool = { totalCount: 2, idleCount: 1, waitingCount: 0 };

const SDK = '# TYPE temporal_request_total counter\ntemporal_request_total 5\n';

test('serves our metrics and those of the SDK, read once a second', async (t) => {
  const { url, requests } = await recordingServer(t, { body: SDK });
  const { text } = openMetrics({ pool, sdk: new URL(url).host });
  const pages = await Promise.all([text(), text(), text()]);
  for (const page of pages) {
    assert.match(page, /^sendwright_database_pool_connections\{state="busy"\} 1$/m);
    assert.match(page, /^temporal_request_total 5$/m);
  }
  assert.equal(requests.length, 1);
});

test('serves our metrics if the SDK does not answer', async () => {
  const page = await openMetrics({ pool, sdk: `127.0.0.1:${await getPort()}` }).text();
  assert.match(page, /^sendwright_database_pool_waiting 0$/m);
  assert.doesNotMatch(page, /temporal_/);
});

test('serves health, readiness and metrics of a worker', async (t) => {
  const [port, host] = [await getPort(), '127.0.0.1'];
  let isReady = async () => false;
  let page = async () => 'a 1\n';
  const metrics = { type: 'text/plain; version=0.0.4', text: () => page() };
  const stop = await serveMetrics(metrics, { port, host }, () => isReady());
  t.after(stop);
  const ask = async (path: string) => {
    const response = await fetch(`http://${host}:${port}${path}`);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  assert.deepEqual(await ask('/metrics'), [200, 'text/plain; version=0.0.4', 'a 1\n']);
  assert.deepEqual(await ask('/healthz'), [200, 'application/json', '{"status":"ok"}']);
  assert.deepEqual(await ask('/readyz'), [503, 'application/json', '{"status":"unavailable"}']);
  isReady = () => Promise.reject(new Error('no'));
  assert.equal((await ask('/readyz'))[0], 503);
  isReady = async () => true;
  assert.deepEqual(await ask('/readyz'), [200, 'application/json', '{"status":"ok"}']);
  assert.equal((await ask('/'))[0], 404);
  page = () => Promise.reject(new Error('no'));
  assert.equal((await ask('/metrics'))[0], 500);
  assert.equal((await ask('/healthz'))[0], 200);

  await assert.rejects(serveMetrics(metrics, { port, host }, isReady), { code: 'EADDRINUSE' }, 'reports a port in use');
  await stop();
  await assert.rejects(fetch(`http://${host}:${port}/healthz`), 'it has closed its port');
});
