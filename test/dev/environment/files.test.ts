import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeAtomically } from '../../../dev/environment/atomic-file.ts';
import { trimLogs } from '../../../dev/environment/logs.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { readSecrets } from '../../../dev/environment/secrets.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folder.ts';

test('a reader never finds half of a file that is being replaced', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'file');
  const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(300_000));
  await writeAtomically(path, texts[0] ?? '');
  const state = { isDone: false };
  const writing = (async () => {
    for (let i = 0; i < 60; i++) await writeAtomically(path, texts[i % 3] ?? '');
    state.isDone = true;
  })();
  while (!state.isDone) assert.ok(texts.includes(await readFile(path, 'utf8')));
  await writing;
  assert.deepEqual(await readdir(folder), ['file']);
});

test('generates secrets once, for their owner only, and those that an older file lacks', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const first = await readSecrets(path);
  assert.deepEqual(await readSecrets(path), first);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const values = Object.values(first) as string[];
  assert.equal(new Set(values).size, values.length);
  assert.match(first.database_password, /^[\w-]{32}$/);

  await writeFile(path, '{"database_password":"old"}');
  const completed = await readSecrets(path);
  assert.equal(completed.database_password, 'old');
  assert.ok(completed.secret_key.length >= 32);
  assert.deepEqual(await readSecrets(path), completed);
});

test('keeps a secrets file that is not JSON and names its path', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  await writeFile(path, '{"database_pass');
  await assert.rejects(readSecrets(path), (error: Error) => error instanceof Problem && error.message.startsWith(path));
  assert.equal(await readFile(path, 'utf8'), '{"database_pass');
});

test('rotates a log that is too large', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'api.log'), 'x'.repeat(101));
  await writeFile(join(folder, 'worker.log'), 'y'.repeat(100));
  t.after(trimLogs(folder, 100, 1));
  await eventually('an empty log', async () => (await stat(join(folder, 'api.log'))).size === 0);
  assert.equal(await readFile(join(folder, 'api.log.1'), 'utf8'), 'x'.repeat(101));
  assert.equal((await stat(join(folder, 'worker.log'))).size, 100);
});
