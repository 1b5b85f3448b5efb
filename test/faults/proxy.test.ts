import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startProxy, type TcpProxy } from './proxy.ts';

/** A server that echoes, behind a proxy. */
async function echo(t: TestContext, onClose: (socket: Socket) => void = () => undefined): Promise<TcpProxy> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('close', () => onClose(socket));
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await startProxy((server.address() as AddressInfo).port);
  t.after(async () => {
    await proxy.close();
    server.close();
  });
  return proxy;
}

function visit(proxy: TcpProxy): { socket: Socket; heard: () => string } {
  let heard = '';
  const socket = connect(proxy.port, '127.0.0.1');
  socket.on('error', () => undefined).on('data', (data: Buffer) => (heard += data.toString()));
  return { socket, heard: () => heard };
}

test('delivers held data in order after the release', async (t) => {
  const proxy = await echo(t);
  const { socket, heard } = visit(proxy);
  socket.write('one ');
  await eventually('it is echoed', () => heard() === 'one ');
  const seen: string[] = [];
  proxy.watch((direction, data) => {
    seen.push(`${direction} ${data.toString()}`);
    proxy.hold('response');
  });
  socket.write('two ');
  await eventually('the answer is held', () => seen.includes('response two '));
  assert.deepEqual([seen, heard()], [['request two ', 'response two '], 'one ']);
  proxy.release();
  await eventually('it comes', () => heard() === 'one two ');
  socket.destroy();
});

test('keeps a stranded connection open without data, and passes new ones', async (t) => {
  const closed: Socket[] = [];
  const proxy = await echo(t, (socket) => closed.push(socket));
  const first = visit(proxy);
  first.socket.write('one');
  await eventually('it is echoed', () => first.heard() === 'one');
  proxy.strand(600_000);
  first.socket.write('two');
  first.socket.destroy();
  const second = visit(proxy);
  second.socket.write('three');
  await eventually('a new connection passes', () => second.heard() === 'three');
  second.socket.destroy();
  await eventually('the server sees the end of the new one', () => closed.length === 1);
  assert.equal(first.heard(), 'one');
  proxy.strand(0);
  const third = visit(proxy);
  await once(third.socket, 'connect');
  proxy.strand(1);
  await once(third.socket, 'close');
});

test('gives a connection no answers once its request matches, and answers others', async (t) => {
  const proxy = await echo(t);
  const echoed: string[] = [];
  proxy.watch((direction, data) => direction === 'response' && echoed.push(data.toString()));
  const end = proxy.mute((data) => data.includes('secret'));
  const [muted, other] = [visit(proxy), visit(proxy)];
  muted.socket.write('one');
  await eventually('it is echoed', () => muted.heard() === 'one');
  muted.socket.write('secret');
  await eventually('the server answers', () => echoed.includes('secret'));
  muted.socket.write('two');
  other.socket.write('three');
  await eventually('others are answered', () => other.heard() === 'three' && echoed.includes('two'));
  assert.equal(muted.heard(), 'one');
  end();
  other.socket.write(' secret');
  await eventually('later ones are answered', () => other.heard() === 'three secret');
  muted.socket.destroy();
  other.socket.destroy();
});
