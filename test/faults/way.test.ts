import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { openWay, type Way } from './way.ts';

/** A server that says everything back, and a way to it. */
async function echo(t: TestContext): Promise<Way> {
  const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const way = await openWay((server.address() as AddressInfo).port);
  t.after(async () => {
    await way.close();
    server.close();
  });
  return way;
}

function visit(way: Way): { socket: Socket; heard: () => string } {
  let heard = '';
  const socket = connect(way.port, '127.0.0.1');
  socket.on('error', () => undefined).on('data', (data: Buffer) => (heard += data.toString()));
  return { socket, heard: () => heard };
}

test('what is held in the moment it passes comes after the release, in order', async (t) => {
  const way = await echo(t);
  const { socket, heard } = visit(way);
  socket.write('one ');
  await eventually('it is said back', () => heard() === 'one ');
  const seen: string[] = [];
  way.watch((direction, data) => {
    seen.push(`${direction} ${data.toString()}`);
    way.hold('back');
  });
  socket.write('two ');
  await eventually('the answer is held', () => seen.includes('back two '));
  assert.deepEqual([seen, heard()], [['there two ', 'back two '], 'one ']);
  way.release();
  await eventually('it comes', () => heard() === 'one two ');
  socket.destroy();
});

test('cut breaks what is open; shut also what comes, until it is open again', async (t) => {
  const way = await echo(t);
  const first = visit(way);
  await once(first.socket, 'connect');
  way.cut();
  await once(first.socket, 'close');
  way.shut();
  const second = visit(way);
  await once(second.socket, 'close');
  way.open();
  const third = visit(way);
  third.socket.write('hello');
  await eventually('it is said back', () => third.heard() === 'hello');
  third.socket.destroy();
});

test('a stranded connection stays open and dead, whoever closes; new ones pass', async (t) => {
  const closed: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('close', () => closed.push(socket));
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const way = await openWay((server.address() as AddressInfo).port);
  t.after(async () => {
    await way.close();
    server.close();
  });
  const first = visit(way);
  first.socket.write('one');
  await eventually('it is echoed', () => first.heard() === 'one');
  way.strand(600_000);
  first.socket.write('two');
  first.socket.destroy();
  const second = visit(way);
  second.socket.write('three');
  await eventually('a new connection passes', () => second.heard() === 'three');
  second.socket.destroy();
  await eventually('the server sees the end of the new one', () => closed.length === 1);
  assert.equal(first.heard(), 'one');
  way.strand(0);
  const third = visit(way);
  await once(third.socket, 'connect');
  way.strand(1);
  await once(third.socket, 'close');
});
