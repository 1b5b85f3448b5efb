import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type EndpointConnection, makePublicPost } from '../../src/public-fetch/post.ts';
import { Unfetchable } from '../../src/public-fetch/unfetchable.ts';
import { eventually } from '../support/eventually.ts';
import { startPrivateServer, names, rawSite, REACHABLE, silentSite, site } from './web.ts';

const KEEP = 100;

/** The way to a URL that may be on our side, unless the test sets another one. */
function connectTo(
  t: TestContext,
  url: string,
  settings: Partial<Parameters<typeof makePublicPost>[0]> = {},
  within = 2_000,
): EndpointConnection {
  const line = makePublicPost({ allowedCidrs: [REACHABLE], ...settings }, within)(url, 4, KEEP);
  t.after(() => line.close());
  return line;
}

const post = (line: EndpointConnection, body = '{}') =>
  line.post({ 'content-type': 'application/json', 'x-a': 'b' }, body);

/** A post fails with this sentence. */
async function assertFails(line: EndpointConnection, message: string): Promise<void> {
  await assert.rejects(post(line), (error: unknown) => {
    assert.ok(error instanceof Unfetchable, String(error));
    assert.equal(error.message, message);
    return true;
  });
}

const PRIVATE = 'its host cannot be found on the public internet';

/** A web server that records requests. */
async function receiver(t: TestContext, answer: RequestListener = (_, response) => response.end('ok')) {
  const bodies: string[] = [];
  const at = await site(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      bodies.push(`${request.method} ${Buffer.concat(chunks).toString()}`);
      answer(request, response);
    });
  });
  return { ...at, bodies };
}

describe('a post', () => {
  test('sends the body and returns the response', async (t) => {
    const { url, bodies, requests } = await receiver(t, (_, response) => {
      response.writeHead(429, { 'retry-after': '12' }).end('later');
    });
    const answer = await post(connectTo(t, `${url}/hook?a=b#c`), '{"ä":"👋"}');
    assert.deepEqual(answer, { status: 429, retryAfter: '12', body: Buffer.from('later') });
    assert.deepEqual(bodies, ['POST {"ä":"👋"}']);
    assert.equal(requests[0]?.url, '/hook?a=b');
    assert.equal(requests[0].headers['x-a'], 'b');
    assert.equal(requests[0].headers['host'], new URL(url).host);
  });

  test('reuses connections', async (t) => {
    const { url, open } = await receiver(t);
    const line = connectTo(t, url);
    for (let i = 0; i < 20; i++) await post(line);
    // One may still be on its way back when the next post begins.
    assert.ok(open.size <= 2, `${open.size} connections`);
    await Promise.all(Array.from({ length: 20 }, () => post(line)));
    assert.ok(open.size <= 4, `${open.size} connections`);
  });

  test('follows no redirect', async (t) => {
    const other = await receiver(t);
    const { url } = await receiver(t, (_, response) => response.writeHead(302, { location: other.url }).end());
    assert.equal((await post(connectTo(t, url))).status, 302);
    assert.equal(other.requests.length, 0);
  });

  test('keeps the first bytes of a long answer, and ends it early', async (t) => {
    const { url, open } = await receiver(t, (_, response) => {
      const write = (): void => {
        while (response.write('x'.repeat(10_000)));
        response.once('drain', write);
      };
      write();
    });
    assert.deepEqual((await post(connectTo(t, url))).body, Buffer.alloc(KEEP, 'x'));
    await eventually('its connection is closed', () => open.size === 0);
  });

  test('drops a compressed response body', async (t) => {
    const { url } = await receiver(t, (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(1_000_000)));
    });
    assert.deepEqual(await post(connectTo(t, url)), { status: 200, retryAfter: null, body: null });
  });

  test('returns its status if the body breaks off or never ends', async (t) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc';
    const breaks = await rawSite(t, (socket) => socket.end(head));
    assert.deepEqual(await post(connectTo(t, breaks)), { status: 200, retryAfter: null, body: Buffer.from('abc') });
    const hangs = await rawSite(t, (socket) => socket.write(head));
    assert.equal((await post(connectTo(t, hangs, {}, 500))).status, 200);
  });
});

describe('a post fails', () => {
  test('when no answer comes in time, however slowly', async (t) => {
    const silent = await receiver(t, () => undefined);
    await assertFails(connectTo(t, silent.url, {}, 300), 'it takes longer than 0.3 seconds');
    const drips = await rawSite(t, (socket) => {
      const timer = setInterval(() => socket.write('H'), 50);
      socket.on('close', () => clearInterval(timer));
    });
    await assert.rejects(post(connectTo(t, drips, {}, 300)), Unfetchable);
  });

  test('when its server does not answer the TLS handshake in time', async (t) => {
    const silent = await silentSite(t);
    const line = connectTo(t, silent.url, {}, 300);
    await assertFails(line, 'it takes longer than 0.3 seconds');
    line.close();
    await eventually('the connection is closed', () => silent.open.size === 0);
  });

  test('if its server breaks off after an informational response', async (t) => {
    const early = await rawSite(t, (socket) => socket.end('HTTP/1.1 103 Early Hints\r\n\r\n'));
    await assertFails(connectTo(t, early), 'its server breaks off');
  });

  test('if no server listens, and works when one does', async (t) => {
    const server = createServer((_, response) => response.end());
    server.listen(0, REACHABLE);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const line = connectTo(t, `http://${REACHABLE}:${port}`);
    await assertFails(line, 'its server cannot be reached');
    server.listen(port, REACHABLE);
    await once(server, 'listening');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    assert.equal((await post(line)).status, 200);
  });

  test('if its server does not speak HTTP or closes the connection', async (t) => {
    await assertFails(
      connectTo(t, await rawSite(t, (socket) => socket.end('hello'))),
      'its server does not answer in HTTP',
    );
    await assertFails(connectTo(t, await rawSite(t, (socket) => socket.destroy())), 'its server breaks off');
  });
});

describe('a post reaches', () => {
  test('no private host, by any address or name', async (t) => {
    const { port, ...seen } = await startPrivateServer(t);
    const { resolve } = names({
      'mixed.example': [['8.8.8.8', '127.0.0.1']],
      'mapped.example': [['::ffff:127.0.0.1']],
      'nothing.example': [[]],
    });
    for (const host of [
      '127.0.0.1',
      '[::ffff:7f00:1]',
      'localhost',
      'mixed.example',
      'mapped.example',
      'nothing.example',
    ]) {
      await assertFails(connectTo(t, `https://${host}:${port}/`, { resolve }), PRIVATE);
    }
    assert.equal(seen.connections, 0);
  });

  test('over http only hosts that the operator allows, not even public ones', async (t) => {
    const { url, port, requests } = await receiver(t);
    const { resolve } = names({
      'hooks.internal': [[REACHABLE]],
      'public.example': [['8.8.8.8']],
      'mixed.example': [[REACHABLE, '8.8.8.8']],
    });
    assert.equal((await post(connectTo(t, `http://hooks.internal:${port}`, { resolve }))).status, 200);
    assert.equal((await post(connectTo(t, url))).status, 200);
    await assertFails(connectTo(t, `http://public.example:${port}`, { resolve }), PRIVATE);
    await assertFails(connectTo(t, `http://mixed.example:${port}`, { resolve }), PRIVATE);
    await assertFails(connectTo(t, 'http://8.8.8.8/'), 'it is not an https URL');
    assert.equal(requests.length, 2);
  });

  test('the address that its name had when the connection was opened; a later answer is ignored', async (t) => {
    const { port, requests } = await receiver(t);
    const seen = await startPrivateServer(t);
    const { resolve, asked } = names({ 'rebinding.example': [[REACHABLE], ['127.0.0.1']] });
    const line = connectTo(t, `http://rebinding.example:${port}`, { resolve });
    for (let i = 0; i < 5; i++) await post(line);
    assert.deepEqual([asked.length, requests.length, seen.connections], [1, 5, 0]);
  });
});
