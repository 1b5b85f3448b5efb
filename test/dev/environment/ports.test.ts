import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryLock } from '../../../dev/environment/lock.ts';
import { homePorts, makePorts, reportsPortInUse } from '../../../dev/environment/ports.ts';
import { temporaryFolder } from '../../support/folder.ts';

/** Listens at any free port from the range that no outgoing connection uses. */
async function occupy(port: number) {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('a port in use is replaced by the next free one above it', async (t) => {
  const ports = makePorts(await temporaryFolder(t));
  const wanted = await ports.choose(23_170);
  const server = await occupy(wanted);
  t.after(() => server.close());
  const other = makePorts(await temporaryFolder(t));
  const next = await other.choose(wanted);
  assert.ok(next > wanted && next <= wanted + 100, `${next} is not just above ${wanted}`);
});

test('what another home has chosen and does not use yet is not chosen, until it is released', async (t) => {
  const folder = await temporaryFolder(t);
  const wanted = await makePorts(await temporaryFolder(t)).choose(24_310);
  const chosen = await tryLock(join(folder, `${wanted + 1}.lock`));
  assert.ok('release' in chosen);
  const ports = makePorts(folder);
  const other = await ports.choose(wanted + 1);
  assert.ok(other > wanted + 1, `${other} was given away twice`);
  assert.ok('pid' in (await tryLock(join(folder, `${other}.lock`))));
  await ports.release();
  assert.ok('release' in (await tryLock(join(folder, `${other}.lock`))));
});

test('any port is one that no outgoing connection takes, and differs from those chosen before', async (t) => {
  const ports = makePorts(await temporaryFolder(t));
  const chosen = await Promise.all(Array.from({ length: 50 }, () => ports.choose(0)));
  t.after(() => ports.release());
  assert.ok(
    chosen.every((port) => port >= 10_000 && port <= 30_000),
    chosen.join(),
  );
  assert.equal(new Set(chosen).size, 50);
});

test('a home has the same ports at every start, and others than its neighbours', () => {
  assert.deepEqual(homePorts('/a/.sendwright'), homePorts('/a/.sendwright'));
  const homes = Array.from({ length: 20 }, (_, index) => homePorts(`/clone-${index}/.sendwright`));
  assert.ok(new Set(homes.map(({ postgres }) => postgres)).size > 17);
  for (const ports of homes) {
    const all = Object.values(ports);
    assert.equal(new Set(all).size, 4);
    assert.ok(all.every((port) => port >= 10_000 && port < 30_000));
  }
});

test('a taken port is recognized in the errors of Node, Go and Postgres', () => {
  for (const output of [
    'Error: listen EADDRINUSE: address already in use 127.0.0.1:3000',
    "can't set frontend port 7233: listen tcp4 127.0.0.1:7233: bind: address already in use",
    'LOG:  could not bind IPv4 address "127.0.0.1": Address already in use',
  ]) {
    assert.ok(reportsPortInUse(output), output);
  }
  assert.ok(!reportsPortInUse('Error: connect ECONNREFUSED 127.0.0.1:5432'));
});
