import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Lock, tryLock, withLock } from '../../../dev/environment/lock.ts';
import { temporaryFolder } from '../../support/folder.ts';

const MODULE = fileURLToPath(new URL('../../../dev/environment/lock.ts', import.meta.url));

async function taken(path: string): Promise<Lock> {
  const lock = await tryLock(path);
  assert.ok('release' in lock, 'the lock is held by somebody');
  return lock;
}

/** Runs a script in another process; its output is what it printed. */
function other(t: TestContext, script: string) {
  const code = `import { appendFileSync } from 'node:fs'; import { tryLock, withLock } from '${MODULE}'; ${script}`;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('a lock has one holder, who is named, until it is released', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  const lock = await taken(path);
  assert.deepEqual(pick(await tryLock(path)), { pid: process.pid, host: hostname() });
  await lock.release();
  await (await taken(path)).release();
});

function pick(holder: object) {
  const { pid, host } = holder as { pid: number; host: string };
  return { pid, host };
}

test('the lock of a process that was killed is taken over at once', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  const holder = other(t, `await tryLock('${path}'); console.log('has it'); setInterval(() => {}, 1000)`);
  await once(holder.stdout, 'data');
  assert.equal(pick(await tryLock(path)).pid, holder.pid);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await (await taken(path)).release();
});

test('a holder on another machine is believed as long as it is heard of', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  await writeFile(path, JSON.stringify({ pid: 1, host: 'elsewhere' }));
  assert.deepEqual(pick(await tryLock(path)), { pid: 1, host: 'elsewhere' });
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(path, longAgo, longAgo);
  await taken(path);
});

test('releasing leaves the lock of a successor alone', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'lock');
  const lock = await taken(path);
  await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname(), at: 'a successor' }));
  await lock.release();
  assert.match(await readFile(path, 'utf8'), /a successor/);
  assert.deepEqual(await readdir(folder), ['lock']);
});

test('of several processes one at a time does its work', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'lock');
  const log = join(folder, 'log');
  const script = `
    for (let i = 0; i < 3; i++) await withLock('${path}', () => {}, undefined, async () => {
      appendFileSync('${log}', '(');
      await new Promise((resolve) => setTimeout(resolve, 20));
      appendFileSync('${log}', ')');
    })`;
  await Promise.all([1, 2, 3, 4].map(() => once(other(t, script), 'exit')));
  assert.equal(await readFile(log, 'utf8'), '()'.repeat(12));
});

test('waiting for a lock is said once and can be given up', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  await taken(path);
  const giveUp = new AbortController();
  const waits: number[] = [];
  const waiting = withLock(
    path,
    ({ pid }) => waits.push(pid),
    giveUp.signal,
    () => Promise.reject(new Error('nobody has let it in')),
  );
  setTimeout(() => giveUp.abort(), 500);
  await assert.rejects(waiting, { name: 'AbortError' });
  assert.deepEqual(waits, [process.pid]);
});
