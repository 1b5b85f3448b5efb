import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { endOrphans, recordProcesses, takeHome } from '../../../dev/environment/home.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { commandLine, endRecorded, stillRuns } from '../../../dev/environment/processes.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { isAlive } from './scripts.ts';

/** A process that does nothing; `mark` stands in its command line. */
async function idle(t: TestContext, mark: string, script = '') {
  const code = `${script}; console.log('runs'); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ['-e', code, mark], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child as ChildProcess & { pid: number };
}

test('a home has one owner; who comes second is told where the first one is', async (t) => {
  const folder = join(await temporaryFolder(t), 'a', '.sendwright');
  const { home, release } = await takeHome(folder);
  const isTold = (words: string) => (error: Error) => error instanceof Problem && error.message.includes(words);
  await assert.rejects(takeHome(folder), isTold(`already runs in ${home.path} (process ${process.pid} on `));
  await writeFile(home.devFile, JSON.stringify({ base_url: 'http://127.0.0.1:3456' }));
  await assert.rejects(takeHome(folder), isTold('and serves at http://127.0.0.1:3456'));
  await release();
  await (await takeHome(folder)).release();
});

test('what an earlier start has left is ended, and what it said of itself removed', async (t) => {
  const { home, release } = await takeHome(await temporaryFolder(t));
  t.after(release);
  const postgres = await idle(t, home.postgres);
  const stubborn = await idle(t, home.temporal, `process.on('SIGTERM', () => {})`);
  const gone = await idle(t, home.path);
  gone.kill('SIGKILL');
  await once(gone, 'exit');
  await recordProcesses(home, {
    postgres: { pid: postgres.pid, mark: home.postgres },
    temporal: { pid: stubborn.pid, mark: home.temporal },
    api: { pid: gone.pid, mark: home.path },
  });
  await writeFile(home.devFile, '{}');
  // A process that has let go of its memory is gone to all others before its parent hears of it.
  const ends = Promise.all([postgres, stubborn].map((child) => once(child, 'exit')));

  assert.deepEqual(await endOrphans(home), ['temporal', 'postgres']);
  assert.deepEqual(await ends, [
    [null, 'SIGINT'],
    [null, 'SIGKILL'],
  ]);
  for (const path of [home.devFile, home.processes]) await assert.rejects(access(path));
  assert.deepEqual(await endOrphans(home), []);
});

test('a process that got a dead one’s id is left alone', async (t) => {
  const { home, release } = await takeHome(await temporaryFolder(t));
  t.after(release);
  const somebody = await idle(t, 'something else');
  await recordProcesses(home, { postgres: { pid: somebody.pid, mark: home.postgres } });
  assert.deepEqual(await endOrphans(home), []);
  assert.ok(isAlive(somebody.pid));
});

test('a process is known by its command line as long as it runs', async (t) => {
  const child = await idle(t, 'a mark');
  assert.match((await commandLine(child.pid)) ?? '', / a mark$/);
  assert.ok(await stillRuns({ pid: child.pid, mark: 'a mark' }));
  assert.ok(!(await stillRuns({ pid: child.pid, mark: 'another mark' })));
  assert.ok(await endRecorded({ pid: child.pid, mark: 'a mark' }, 'SIGTERM', 2_000));
  assert.equal(await commandLine(child.pid), undefined);
  assert.ok(!(await endRecorded({ pid: child.pid, mark: 'a mark' }, 'SIGTERM', 2_000)));
});
