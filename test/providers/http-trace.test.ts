import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseRetryAfter } from '../../src/lib/retry-after.ts';
import { type Trace, traced, tracedFetch } from '../../src/providers/http-trace.ts';
import { CERTIFICATE, KEY } from './certificate.ts';
import { closedPort, httpServer, open, tcpServer } from './servers.ts';

/** Posts as an SDK does and reads the answer. */
async function post(url: string, timeout = 20_000): Promise<Trace> {
  const init = { method: 'POST', body: '{}', signal: AbortSignal.timeout(timeout) };
  const { trace } = await traced(async () => (await tracedFetch(url, init)).text());
  return trace;
}

describe('a request that never left', { concurrency: true }, () => {
  const neverLeft = (reason: string): Trace => ({ failure: { reached: 'never left', reason } });

  test('connection refused', async () => {
    assert.deepEqual(await post(`http://127.0.0.1:${await closedPort()}`), neverLeft('connection refused'));
    assert.deepEqual(await post(`http://localhost:${await closedPort()}`), neverLeft('connection refused'));
  });

  test('a host that does not exist', async () => {
    const { failure } = await post('http://nobody.invalid');
    assert.equal(failure?.reached, 'never left');
    assert.match(failure.reason, /^host name (?:not found|lookup failed)$/);
  });

  test('a host that accepts no connection, until the connection timeout', async (t) => {
    const port = await fullPort(t);
    assert.deepEqual(await post(`http://127.0.0.1:${port}`), neverLeft('no connection in time'));
  });

  test('a host that accepts no connection, until the timeout of the caller', async (t) => {
    const port = await fullPort(t);
    assert.deepEqual(await post(`http://127.0.0.1:${port}`, 500), neverLeft('no connection in time'));
  });

  test('TLS to a port that does not speak it', async (t) => {
    const url = await httpServer(t, (_, response) => response.end('{}'));
    const trace = await post(url.replace('http:', 'https:'));
    assert.deepEqual(trace, neverLeft('no secure connection'));
  });

  test('an untrusted certificate', async (t) => {
    let requests = 0;
    const server = createHttpsServer({ cert: CERTIFICATE, key: KEY }, (_, response) => {
      requests++;
      response.end();
    });
    const trace = await post(`https://127.0.0.1:${await open(t, server)}`);
    assert.deepEqual(trace, neverLeft('its certificate is not trusted'));
    assert.equal(requests, 0);
  });
});

describe('a request that may have arrived', { concurrency: true }, () => {
  const mayHaveArrived = (reason: string): Trace => ({ failure: { reached: 'may have arrived', reason } });

  test('reset before any of it was read', async (t) => {
    const port = await tcpServer(t, (socket) => {
      socket.pause();
      setTimeout(() => socket.resetAndDestroy(), 100);
    });
    assert.deepEqual(await post(`http://127.0.0.1:${port}`), mayHaveArrived('connection lost'));
  });

  test('reset after all of it was read', async (t) => {
    const url = await httpServer(t, (request) => {
      request.resume().once('end', () => request.socket.resetAndDestroy());
    });
    assert.deepEqual(await post(url), mayHaveArrived('connection lost'));
  });

  test('no answer until the timeout of the caller', async (t) => {
    const url = await httpServer(t, () => undefined);
    assert.deepEqual(await post(url, 300), mayHaveArrived('no answer in time'));
  });

  test('an answer that is no HTTP', async (t) => {
    const port = await tcpServer(t, (socket) =>
      socket.once('data', () => socket.write('220 smtp.example.com ESMTP\r\n')),
    );
    assert.deepEqual(await post(`http://127.0.0.1:${port}`), mayHaveArrived('connection lost'));
  });

  test('a TLS error after the request was read is not classified as a failed handshake', async (t) => {
    const raw = new Set<Socket>();
    const server = createHttpsServer({ cert: CERTIFICATE, key: KEY }, (request) => {
      // Plain text in the middle of an encrypted connection.
      request.resume().once('end', () => raw.forEach((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')));
    });
    server.on('connection', (socket: Socket) => raw.add(socket));
    const port = await open(t, server);
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      assert.deepEqual(await post(`https://127.0.0.1:${port}`), mayHaveArrived('connection lost'));
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    }
  });
});

test('the trace of an answer contains only its Retry-After', async (t) => {
  const url = await httpServer(t, ({ url }, response) => {
    if (url === '/later') response.setHeader('Retry-After', '7');
    response.writeHead(url === '/later' ? 503 : 200).end('{}');
  });
  assert.deepEqual(await post(url), {});
  assert.deepEqual(await post(`${url}/later`), { retryAfterMs: 7_000 });
});

test('traces of calls that run at the same time are kept apart', async (t) => {
  const url = await httpServer(t, (request, response) => {
    setTimeout(() => (request.url === '/lost' ? request.socket.destroy() : response.end('{}')), 50);
  });
  const refused = `http://127.0.0.1:${await closedPort()}`;
  const traces = await Promise.all([post(`${url}/lost`), post(url), post(refused), post(url)]);
  assert.deepEqual(
    traces.map(({ failure }) => failure?.reached),
    ['may have arrived', undefined, 'never left', undefined],
  );
});

describe('Retry-After', () => {
  const now = Date.parse('2026-03-01T00:00:00Z');
  const cases: [string | null, number | undefined][] = [
    [null, undefined],
    ['120', 120_000],
    ['Sun, 01 Mar 2026 00:01:30 GMT', 90_000],
    ['Sat, 28 Feb 2026 23:59:00 GMT', 0],
    ['9999999999', 86_400_000],
    ['Sun, 01 Mar 2099 00:00:00 GMT', 86_400_000],
    ['soon', undefined],
    ['-5', undefined],
    ['99999999999', undefined],
  ];
  for (const [value, expected] of cases) {
    test(`${JSON.stringify(value)} is ${expected === undefined ? 'no time' : `${expected} ms`}`, () => {
      assert.equal(parseRetryAfter(value, now), expected);
    });
  }
});

/** A port whose server accepts no connections: its process is blocked and its queue is full. */
async function fullPort(t: TestContext): Promise<number> {
  const server = `const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('fs').writeSync(1, String(s.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', server], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [data] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(data.toString());
  for (let i = 0; i < 4; i++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
  }
  await sleep(100);
  return port;
}
