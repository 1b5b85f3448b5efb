import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { endOrphans, recordProcesses, lockHome } from '../../../dev/environment/home.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { isAlive } from '../../../dev/environment/processes.ts';
import { temporaryFolder } from '../../support/folder.ts';

/** A process that does nothing; `mark` stands in its command line. */
async function idle(t: TestContext, mark: string, script = '') {
  const code = `${script}; console.log('runs'); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ['-e', code, mark], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child as ChildProcess & { pid: number };
}

test('has one owner; the second gets the address of the first', async (t) => {
  const folder = join(await temporaryFolder(t), 'a', '.sendwright');
  const { home, release } = await lockHome(folder);
  const hasMessage = (words: string) => (error: Error) => error instanceof Problem && error.message.includes(words);
  await assert.rejects(lockHome(folder), hasMessage(`already runs in ${home.path} (process ${process.pid} on `));
  await writeFile(home.devFile, JSON.stringify({ base_url: 'http://127.0.0.1:3456' }));
  await assert.rejects(lockHome(folder), hasMessage('and serves at http://127.0.0.1:3456'));
  await release();
  await (await lockHome(folder)).release();
});

test('is refused with its path and the reason if this user cannot write to it', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'file'), '');
  const home = join(folder, 'file', '.sendwright');
  await assert.rejects(lockHome(home), (error: Error) => {
    assert.ok(error instanceof Problem);
    assert.match(error.message, /^\S+\/file\/\.sendwright cannot be used: ENOTDIR.*SENDWRIGHT_HOME/);
    return true;
  });
  // Root can write everywhere, but not to a folder.
  await mkdir(join(folder, 'lock'));
  await assert.rejects(lockHome(folder), (error: Error) => {
    assert.ok(error instanceof Problem);
    assert.match(error.message, / cannot be used: EISDIR/);
    return true;
  });
});

test('ends processes of an earlier start and removes its files', async (t) => {
  const { home, release } = await lockHome(await temporaryFolder(t));
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
  for (const path of [home.devFile, home.settings]) await writeFile(path, '{}');
  // A process that has let go of its memory is gone to all others before its parent hears of it.
  const ends = Promise.all([postgres, stubborn].map((child) => once(child, 'exit')));

  assert.deepEqual(await endOrphans(home), ['temporal', 'postgres']);
  assert.deepEqual(await ends, [
    [null, 'SIGINT'],
    [null, 'SIGKILL'],
  ]);
  for (const path of [home.devFile, home.settings, home.processes]) await assert.rejects(access(path));
  assert.deepEqual(await endOrphans(home), []);
});

test('does not end an unrelated process with a reused id', async (t) => {
  const { home, release } = await lockHome(await temporaryFolder(t));
  t.after(release);
  const unrelated = await idle(t, 'something else');
  await recordProcesses(home, { postgres: { pid: unrelated.pid, mark: home.postgres } });
  assert.deepEqual(await endOrphans(home), []);
  assert.ok(isAlive(unrelated.pid));
});
