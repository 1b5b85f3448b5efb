import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Lock, tryLock } from '../../../dev/environment/lock.ts';
import { temporaryFolder } from '../../support/folder.ts';

const MODULE = fileURLToPath(new URL('../../../dev/environment/lock.ts', import.meta.url));

async function taken(path: string): Promise<Lock> {
  const lock = await tryLock(path);
  assert.ok('release' in lock, 'the lock is held');
  return lock;
}

/** Runs a script in another process; its output is what it printed. */
function other(t: TestContext, script: string) {
  const code = `
    import { appendFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { tryLock, withLock } from '${MODULE}';
    ${script}`;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('has one holder, which is named, until it is released', async (t) => {
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

/** A lock that another process has taken. */
async function lockOfOther(t: TestContext) {
  const path = join(await temporaryFolder(t), 'lock');
  const holder = other(t, `await tryLock('${path}'); console.log('has it'); setInterval(() => {}, 1000)`);
  await once(holder.stdout, 'data');
  return { path, holder };
}

test('takes over the lock of a killed process', async (t) => {
  const { path, holder } = await lockOfOther(t);
  assert.equal(pick(await tryLock(path)).pid, holder.pid);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await (await taken(path)).release();
});

test('respects a suspended process until it ends', async (t) => {
  const { path, holder } = await lockOfOther(t);
  holder.kill('SIGSTOP');
  await touchLongAgo(path);
  assert.equal(pick(await tryLock(path)).pid, holder.pid);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await (await taken(path)).release();
});

test('takes over the lock of an ended process whose pid another one has', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname(), startTime: 'earlier' }));
  await touchLongAgo(path);
  await (await taken(path)).release();
});

async function touchLongAgo(path: string): Promise<void> {
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(path, longAgo, longAgo);
}

test('respects a holder on another machine while it renews the lock', async (t) => {
  const path = join(await temporaryFolder(t), 'lock');
  await writeFile(path, JSON.stringify({ pid: 1, host: 'elsewhere' }));
  assert.deepEqual(pick(await tryLock(path)), { pid: 1, host: 'elsewhere' });
  await touchLongAgo(path);
  await taken(path);
});

test('lets one process at a time work', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'lock');
  const log = join(folder, 'log');
  const script = `
    for (let i = 0; i < 3; i++) await withLock('${path}', () => {}, undefined, async () => {
      appendFileSync('${log}', '(');
      await sleep(20);
      appendFileSync('${log}', ')');
    })`;
  await Promise.all([1, 2, 3, 4].map(() => once(other(t, script), 'exit')));
  assert.equal(await readFile(log, 'utf8'), '()'.repeat(12));
});
