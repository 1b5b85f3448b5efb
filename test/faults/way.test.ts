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
