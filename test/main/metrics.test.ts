import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import getPort from 'get-port';
import { openMetrics, serveMetrics } from '../../src/main/wiring/metrics.ts';

const pool = { totalCount: 2, idleCount: 1, waitingCount: 0 };

/** What Temporal's SDK serves, as far as we are concerned. @returns where, and how often it was requests */
async function sdk(t: TestContext): Promise<{ address: string; requests: () => number }> {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.end('# TYPE temporal_request_total counter\ntemporal_request_total 5\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
}

/** An address on which nothing listens. */
const nowhere = async () => `127.0.0.1:${await getPort()}`;

test('serves our metrics and those of the SDK, read once a second', async (t) => {
  const { address, requests } = await sdk(t);
  const { text } = openMetrics({ pool, sdk: address });
  const pages = await Promise.all([text(), text(), text()]);
  for (const page of pages) {
    assert.match(page, /^sendwright_database_pool_connections\{state="busy"\} 1$/m);
    assert.match(page, /^temporal_request_total 5$/m);
  }
  assert.equal(requests(), 1);
});

test('serves our metrics if the SDK does not answer', async () => {
  const page = await openMetrics({ pool, sdk: await nowhere() }).text();
  assert.match(page, /^sendwright_database_pool_waiting 0$/m);
  assert.doesNotMatch(page, /temporal_/);
});

test('serves health, readiness and metrics of a worker', async () => {
  const [port, host] = [await getPort(), '127.0.0.1'];
  let isReady = false;
  let page = async () => 'a 1\n';
  const metrics = { type: 'text/plain; version=0.0.4', text: () => page() };
  const stop = await serveMetrics(metrics, { port, host }, () => isReady);
  const ask = async (path: string) => {
    const response = await fetch(`http://${host}:${port}${path}`);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  assert.deepEqual(await ask('/metrics'), [200, 'text/plain; version=0.0.4', 'a 1\n']);
  assert.deepEqual(await ask('/healthz'), [200, 'application/json', '{"status":"ok"}']);
  assert.deepEqual(await ask('/readyz'), [503, 'application/json', '{"status":"starting"}']);
  isReady = true;
  assert.deepEqual(await ask('/readyz'), [200, 'application/json', '{"status":"ok"}']);
  assert.equal((await ask('/'))[0], 404);
  page = () => Promise.reject(new Error('no'));
  assert.equal((await ask('/metrics'))[0], 500);
  assert.equal((await ask('/healthz'))[0], 200);

  await assert.rejects(
    serveMetrics(metrics, { port, host }, () => true),
    { code: 'EADDRINUSE' },
    'reports a port in use',
  );
  await stop();
  await assert.rejects(fetch(`http://${host}:${port}/healthz`), 'it has closed its port');
});
