import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { useDatabase } from '../support/database.ts';
import { startApi } from './api-process.ts';

/** The share of one network is 4 connections. */
const MAX_CONNECTIONS = '40';
const SHARE = 4;

const database = await useDatabase();

async function start(t: TestContext, env: Record<string, string> = {}): Promise<string> {
  const api = await startApi({ DATABASE_URL: database.url, MAX_CONNECTIONS, ...env });
  t.after(() => api.child.kill('SIGKILL'));
  return api.url;
}

/** Opens connections from an address of this machine, and leaves them open. */
async function open(t: TestContext, url: string, address: string, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () =>
    connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: address }).on('error', () => undefined),
  );
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) {
    if (socket.connecting) await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    // Without reading, its end would not be noticed.
    socket.resume();
  }
  return sockets;
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(20);
}
const isOpen = (socket: Socket): boolean => !socket.closed;
const status = async (url: string, dispatcher?: Agent): Promise<number> => {
  const { statusCode, body } = await request(`${url}/healthz`, { ...(dispatcher && { dispatcher }) });
  await body.dump();
  return statusCode;
};

describe('connections of one network', () => {
  it('beyond its share are closed, so that another network is served', { timeout: 60_000 }, async (t) => {
    const url = await start(t);
    const idle = await open(t, url, '127.0.0.2', Number(MAX_CONNECTIONS));
    await until(() => idle.filter(isOpen).length <= SHARE);
    assert.equal(await status(url), 200);
    assert.equal(idle.filter(isOpen).length, SHARE);
  });

  it('are accepted again once others of it have ended', { timeout: 60_000 }, async (t) => {
    const url = await start(t);
    const idle = await open(t, url, '127.0.0.2', SHARE);
    for (const socket of idle) socket.destroy();
    const agent = new Agent({ connect: { localAddress: '127.0.0.2' } });
    t.after(() => agent.close());
    const accepted = () => status(url, agent).catch(() => undefined);
    while ((await accepted()) !== 200) await sleep(20);
  });

  it('have no share if it is a trusted proxy', { timeout: 60_000 }, async (t) => {
    const url = await start(t, { TRUST_PROXY: '127.0.0.2' });
    const idle = await open(t, url, '127.0.0.2', 3 * SHARE);
    // Connections are accepted in their order, so those before this request have been accepted or closed.
    assert.equal(await status(url), 200);
    assert.equal(idle.filter(isOpen).length, 3 * SHARE);
  });
});

it('closes connections whose headers do not arrive', { timeout: 70_000 }, async (t) => {
  const url = await start(t);
  const [silent, half] = (await open(t, url, '127.0.0.2', 2)) as [Socket, Socket];
  half.write('GET /healthz HTTP/1.1\r\nHos');
  await until(() => silent.closed && half.closed);
});
