import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFile, mkdir, readdir, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../support/folder.ts';
import { ROOT } from '../support/root.ts';

/** Put together, since the compiler of the tests replaces it where it stands. */
const HERE = ['import.meta', 'url'].join('.');
const GREETING = `
  import { readFileSync } from 'node:fs';
  import { name } from './name.ts';
  const word: string = readFileSync(new URL('words/hello.txt', ${HERE}), 'utf8');
  process.stdout.write(word + name);`;

/** A project with one program, which imports another file and reads a file that is no TypeScript. */
async function makeProject(
  t: TestContext,
): Promise<{ root: string; write: (path: string, text: string) => Promise<void> }> {
  const root = await temporaryFolder(t);
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  await write('package.json', '{ "type": "module" }');
  await write('package-lock.json', '{}');
  await write('dev/greeting.ts', GREETING);
  await write('dev/name.ts', `export const name: string = 'world';`);
  await write('dev/words/hello.txt', 'hello ');
  await write('activities/index.ts', 'export {};');
  await write('workflows/index.ts', `export async function greet(): Promise<string> { return 'hello'; }`);
  await write('workflows/interceptors.ts', 'export {};');
  for (const folder of ['src', 'client', 'dev/build']) await mkdir(join(root, folder), { recursive: true });
  for (const name of ['compile-sources.js', 'run.js', 'build/bundle-workflows.ts', 'build/workflow-code.ts'])
    await copyFile(join(ROOT, 'dev', name), join(root, 'dev', name));
  await mkdir(join(root, 'node_modules'));
  for (const name of ['esbuild', '@temporalio'])
    await symlink(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
  return { root, write };
}

function run(root: string) {
  return spawnSync(process.execPath, ['dev/run.js', 'greeting'], { cwd: root, encoding: 'utf8' });
}

test('compiles a program once, and again when a source has changed; bundles workflows only when they have', async (t) => {
  const { root, write } = await makeProject(t);
  const first = run(root);
  assert.equal(first.stdout, 'hello world', first.stderr);
  assert.match(first.stderr, /^Compiling/);
  assert.deepEqual([run(root).stdout, run(root).stderr], ['hello world', '']);

  await write('dev/name.ts', `export const name: string = 'everybody';`);
  const changed = run(root);
  assert.equal(changed.stdout, 'hello everybody');
  assert.match(changed.stderr, /^Compiling/);

  const cache = join(root, 'node_modules/.cache/sendwright');
  const names = await readdir(cache);
  assert.deepEqual(names.map((name) => name.split('-')[0]).sort(), ['sources', 'sources', 'workflows']);
  const folder = execFileSync(process.execPath, ['dev/compile-sources.js'], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
  assert.ok((await stat(join(folder, 'workflow-bundle.js'))).size > 100_000);
});

test('compiles again when the project has moved', async (t) => {
  const { root } = await makeProject(t);
  assert.equal(run(root).stdout, 'hello world');
  const moved = join(await temporaryFolder(t), 'another folder');
  await rename(root, moved);
  const { stdout, stderr } = run(moved);
  assert.equal(stdout, 'hello world', stderr);
});

test('reports a source that cannot be compiled, and keeps nothing of it', async (t) => {
  const { root, write } = await makeProject(t);
  await write('dev/name.ts', 'export const = 1;');
  const { status, stderr } = run(root);
  assert.equal(status, 1);
  assert.match(stderr, /dev\/name\.ts:1:13/);
  await write('dev/name.ts', `export const name: string = 'world';`);
  assert.equal(run(root).stdout, 'hello world');
});
