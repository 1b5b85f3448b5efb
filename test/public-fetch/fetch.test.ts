import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { makePublicFetch } from '../../src/public-fetch/fetch.ts';
import { eventually } from '../support/eventually.ts';
import { CERTIFICATE, KEY } from '../providers/certificate.ts';
import { startPrivateServer, names, rawSite, REACHABLE, silentSite, site } from './web.ts';

const NOT_PUBLIC = 'its host cannot be found on the public internet';
const TOO_LARGE = 'it is larger than what may still be attached';
const fetch = makePublicFetch({ allowedCidrs: [`${REACHABLE}/32`] });
const budget = (left = 1_000_000) => ({ left });
const head = (lines: string) => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`;

describe('a fetch', () => {
  it('gives every byte, takes them from the budget, and asks plainly', async (t) => {
    const content = Buffer.from([0, 255, 13, 10, 0]);
    const web = await site(t, (_, response) => response.end(content));
    const left = budget(100);
    assert.ok((await fetch(`http://user:pass@${REACHABLE}:${web.port}/a%20b?c=d#e`, left)).equals(content));
    assert.equal(left.left, 95);
    const [request] = web.requests;
    assert.equal(request?.url, '/a%20b?c=d');
    assert.equal(request.headers['accept-encoding'], 'identity');
    assert.equal(request.headers['user-agent'], 'Sendwright');
    assert.equal(request.headers['authorization'], undefined);
    assert.equal(request.headers['cookie'], undefined);
    // Sooner than Node's own end of an idle connection.
    await eventually('the connection is closed', () => web.open.size === 0, 2_000);
  });

  it('takes no answer but 200', async (t) => {
    for (const status of [201, 204, 206, 300, 304, 400, 404, 500, 503]) {
      const web = await site(t, (_, response) => response.writeHead(status).end());
      await assert.rejects(fetch(web.url, budget()), { name: 'Unfetchable', message: `its server answers ${status}` });
    }
  });

  it('does not read the body of a response that it rejects', async (t) => {
    const web = await site(t, ({ url }, response) => {
      response.writeHead(url === '/404' ? 404 : 302, { location: '/404' }).write(Buffer.alloc(500_000));
    });
    await assert.rejects(fetch(web.url, budget()), { message: 'its server answers 404' });
    await eventually('both connections are closed', () => web.open.size === 0, 2_000);
  });

  it('reports an error in plain words', async (t) => {
    const closed = await site(t, (_, response) => response.end());
    const gone = await rawSite(t, (socket) => socket.destroy());
    const gibberish = await rawSite(t, (socket) => socket.end('220 smtp.example.com ESMTP\r\n'));
    const half = await rawSite(t, (socket) => socket.end(`${head('Content-Length: 10')}half`));
    for (const [url, message] of [
      [`http://${REACHABLE}:1/`, 'its server cannot be reached'],
      [`https://${REACHABLE}:${closed.port}/`, 'its server cannot be reached'],
      [gone, 'its server breaks off'],
      [gibberish, 'its server does not answer in HTTP'],
      [half, 'its server breaks off'],
    ] as const) {
      await assert.rejects(fetch(url, budget()), { name: 'Unfetchable', message }, url);
    }
  });

  it('requires a certificate that this machine trusts', async (t) => {
    const server = createServer({ key: KEY, cert: CERTIFICATE }, (_, response) => response.end('x')).listen(
      0,
      REACHABLE,
    );
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await assert.rejects(fetch(`https://${REACHABLE}:${port}/`, budget()), {
      message: 'the certificate of its server is not trusted',
    });
  });

  it('ends when its caller gives up, with the caller’s reason', async (t) => {
    const web = await site(t, () => undefined);
    const giveUp = new AbortController();
    const fetching = fetch(web.url, budget(), giveUp.signal);
    await eventually('it was asked', () => web.requests.length === 1);
    giveUp.abort(new Error('enough'));
    await assert.rejects(fetching, { message: 'enough' });
    await eventually('the connection is closed', () => web.open.size === 0);
  });
});

describe('redirects', () => {
  it('are followed three times and no more, relative ones too', async (t) => {
    const web = await site(t, ({ url = '' }, response) => {
      const hops = Number(url.slice(1));
      if (hops === 0) response.end('there');
      else response.writeHead([301, 302, 303, 307, 308][hops] as number, { location: `./${hops - 1}` }).end();
    });
    assert.equal(String(await fetch(`${web.url}/3`, budget())), 'there');
    await assert.rejects(fetch(`${web.url}/4`, budget()), { message: 'it redirects more than 3 times' });
    assert.equal(web.requests.length, 8);
  });

  it('get the credentials of the first URL only at its own origin', async (t) => {
    const other = await site(t, (_, response) => response.end('there'));
    const web = await site(t, ({ url }, response) => {
      response.writeHead(302, { location: url === '/' ? '/same' : `${other.url}/` }).end();
    });
    assert.equal(String(await fetch(`${web.url}/`, budget(), undefined, 'Bearer token')), 'there');
    const sent = [...web.requests, ...other.requests].map(({ headers }) => headers['authorization']);
    assert.deepEqual(sent, ['Bearer token', 'Bearer token', undefined]);
  });

  it('lead nowhere that the first URL may not', async (t) => {
    const seen = await startPrivateServer(t);
    let location = '';
    const web = await site(t, (_, response) => response.writeHead(302, { location }).end());
    for (const [target, message] of [
      ['file:///etc/passwd', 'it is not an http or https URL'],
      ['http://169.254.169.254/latest/meta-data/', NOT_PUBLIC],
      [`//127.0.0.1:${seen.port}/`, NOT_PUBLIC],
      [`http://[::1]:${seen.port}/`, NOT_PUBLIC],
      [`http://localhost:${seen.port}/`, NOT_PUBLIC],
      [`http://${REACHABLE}:6379/`, 'its port 6379 is not one of web servers'],
      ['http://', 'it is not a URL'],
    ] as const) {
      location = target;
      await assert.rejects(fetch(web.url, budget()), { message }, target);
    }
    assert.equal(seen.connections, 0);
  });

  it('have their names resolved again, and checked again', async (t) => {
    const seen = await startPrivateServer(t);
    const web = await site(t, (_, response) => {
      response.writeHead(302, { location: `http://rebinds.test:${seen.port}/` }).end();
    });
    const { asked, resolve } = names({ 'rebinds.test': [[REACHABLE], ['127.0.0.1']] });
    const rebinding = makePublicFetch({ allowedCidrs: [`${REACHABLE}/32`], resolve });
    await assert.rejects(rebinding(`http://rebinds.test:${web.port}/`, budget()), { message: NOT_PUBLIC });
    assert.deepEqual(asked, ['rebinds.test', 'rebinds.test']);
    assert.equal(seen.connections, 0);
  });

  it('contain neither credentials nor cookies', async (t) => {
    const web = await site(t, ({ url }, response) => {
      if (url === '/there') response.end();
      else
        response.writeHead(302, { location: `http://u:p@${REACHABLE}:${web.port}/there`, 'set-cookie': 'a=b' }).end();
    });
    await fetch(`http://u:p@${REACHABLE}:${web.port}/`, budget());
    assert.equal(web.requests[1]?.headers['authorization'], undefined);
    assert.equal(web.requests[1]?.headers['cookie'], undefined);
  });
});

describe('a large answer', () => {
  it('ends at the budget, however long it would go on', async (t) => {
    const web = await site(t, (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      };
      response.on('drain', more);
      more();
    });
    const left = budget(500_000);
    await assert.rejects(fetch(web.url, left), { message: TOO_LARGE });
    assert.ok(left.left >= -65_536, `stopped within 64 KiB of the cap, not ${-left.left} bytes past it`);
    await eventually('the connection is closed', () => web.open.size === 0);
  });

  it('is refused by its Content-Length, also if that is too small', async (t) => {
    const honest = await rawSite(t, (socket) => socket.write(head('Content-Length: 11')));
    const left = budget(10);
    await assert.rejects(fetch(honest, left), { message: TOO_LARGE });
    assert.equal(left.left, 10);
    const short = await rawSite(t, (socket) => socket.end(`${head('Content-Length: 3')}abcdefghijklmn`));
    const taken = await fetch(short, budget(10)).then(String, (error: unknown) => (error as Error).message);
    assert.ok(['abc', 'its server does not answer in HTTP', 'its server breaks off'].includes(taken), taken);
  });

  it('may be as large as the budget, to the byte, which several share', async (t) => {
    const web = await site(t, (_, response) => response.end(Buffer.alloc(1_000)));
    const left = budget(3_000);
    await Promise.all([fetch(web.url, left), fetch(web.url, left), fetch(web.url, left)]);
    assert.equal(left.left, 0);
    await assert.rejects(fetch(web.url, left), { message: TOO_LARGE });
  });

  it('is not taken compressed, by whatever name', async (t) => {
    const bomb = gzipSync(Buffer.alloc(1_000_000));
    for (const headers of [
      { 'content-encoding': 'gzip' },
      { 'content-encoding': 'BR' },
      { 'content-encoding': 'identity, gzip' },
    ]) {
      const web = await site(t, (_, response) => response.writeHead(200, headers).end(bomb));
      await assert.rejects(fetch(web.url, budget()), /compressed/);
    }
    const web = await site(t, (_, response) => response.writeHead(200, { 'content-encoding': 'identity' }).end('x'));
    assert.equal(String(await fetch(web.url, budget())), 'x');
  });
});

describe('a slow server', () => {
  const hurried = makePublicFetch({ allowedCidrs: [`${REACHABLE}/32`] }, 300);
  const late = { name: 'Unfetchable', message: 'it takes longer than 0.3 seconds' };

  it('is not waited for: before its answer, or between two bytes', async (t) => {
    const silent = await site(t, () => undefined);
    await assert.rejects(hurried(silent.url, budget()), late);
    const drips = await site(t, (request, response) => {
      const dripping = setInterval(() => response.write('.'), 20);
      request.socket.on('close', () => clearInterval(dripping));
    });
    await assert.rejects(hurried(drips.url, budget()), late);
    await eventually('both connections are closed', () => silent.open.size + drips.open.size === 0);
  });

  it('is not waited for in the TLS handshake, neither at the deadline nor when its caller aborts', async (t) => {
    const silent = await silentSite(t);
    await assert.rejects(hurried(silent.url, budget()), late);
    const caller = new AbortController();
    const fetching = hurried(silent.url, budget(), caller.signal);
    caller.abort(new Error('enough'));
    await assert.rejects(fetching, { message: 'enough' });
    await eventually('the connections are closed', () => silent.open.size === 0);
  });

  it('has one time for all of its redirects', async (t) => {
    const web = await site(t, (_, response) => {
      setTimeout(() => response.writeHead(302, { location: '/' }).end(), 120);
    });
    await assert.rejects(hurried(web.url, budget()), late);
  });
});

test('the default timeout of a fetch is 15 seconds', async (t) => {
  const web = await site(t, (request, response) => {
    const dripping = setInterval(() => response.write('.'), 1_000);
    request.socket.on('close', () => clearInterval(dripping));
  });
  await assert.rejects(fetch(web.url, budget()), { message: 'it takes longer than 15 seconds' });
});
