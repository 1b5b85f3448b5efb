import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isAtLeast, neededGo } from '../../../dev/environment/go-build.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { makeProgress } from '../../../dev/environment/progress.ts';
import { findTemporalCli } from '../../../dev/environment/temporal-cli.ts';
import { findTimeSkippingServer } from '../../../dev/environment/time-skipping.ts';
import { temporaryFolder } from '../../support/folder.ts';

/** A program that prints a version of the Temporal CLI. */
async function fakeCli(path: string, version: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\necho "temporal version ${version} (Server 1.31.2, UI 2.50.1)"\n`, { mode: 0o755 });
  return path;
}

async function setUp(t: TestContext) {
  const folder = await temporaryFolder(t);
  const output: string[] = [];
  const progress = makeProgress({ write: (text) => output.push(text) });
  await mkdir(join(folder, 'old'));
  await mkdir(join(folder, 'new'));
  return { folder, output, progress };
}

test('prefers the CLI of TEMPORAL_CLI_PATH, of any version', async (t) => {
  const { folder, output, progress } = await setUp(t);
  const named = await fakeCli(join(folder, 'mine'), '1.0.0');
  await fakeCli(join(folder, 'new/temporal'), '1.9.0');
  assert.equal(await findTemporalCli({ TEMPORAL_CLI_PATH: named, PATH: join(folder, 'new') }, progress), named);
  assert.match(output.join(''), /1\.0\.0: the one that TEMPORAL_CLI_PATH names/);
});

test('refuses a TEMPORAL_CLI_PATH that is no Temporal CLI', async (t) => {
  const { progress } = await setUp(t);
  for (const path of ['/nowhere/temporal', '/bin/ls']) {
    await assert.rejects(
      findTemporalCli({ TEMPORAL_CLI_PATH: path }, progress),
      (error: Error) =>
        error instanceof Problem && error.message.startsWith('TEMPORAL_CLI_PATH names no Temporal CLI:'),
    );
  }
});

test('takes the first CLI on PATH that is new enough', async (t) => {
  const { folder, output, progress } = await setUp(t);
  await fakeCli(join(folder, 'old/temporal'), '1.3.0');
  const found = await fakeCli(join(folder, 'new/temporal'), '1.8.0');
  const PATH = [join(folder, 'nowhere'), join(folder, 'old'), join(folder, 'new')].join(':');
  assert.equal(await findTemporalCli({ PATH }, progress), found);
  assert.match(output.join(''), /1\.3\.0 on PATH is older than 1\.8\.0 and not used/);
});

test('takes the time-skipping server of TEMPORAL_TEST_SERVER_PATH if it can be run', async (t) => {
  const { folder, progress } = await setUp(t);
  const named = await fakeCli(join(folder, 'server'), '1');
  assert.equal(await findTimeSkippingServer({ TEMPORAL_TEST_SERVER_PATH: named }, progress), named);
  await assert.rejects(
    findTimeSkippingServer({ TEMPORAL_TEST_SERVER_PATH: join(folder, 'nothing') }, progress),
    /TEMPORAL_TEST_SERVER_PATH names no program/,
  );
});

test('versions are compared by their numbers', () => {
  for (const [version, needed, expected] of [
    ['1.26.10', '1.26.4', true],
    ['1.27', '1.26.4', true],
    ['1.9.9', '1.26.4', false],
    ['1.27rc1', '1.26.4', true],
    ['devel', '1.26.4', false],
  ] as const) {
    assert.equal(isAtLeast(version, needed), expected, `${version} at least ${needed}`);
  }
});

test('the Go module and the pom name the versions that are written on what they make', async () => {
  const read = (name: string) => readFile(new URL(`../../../dev/environment/${name}`, import.meta.url), 'utf8');
  const versionIn = async (name: string) => /VERSION = '(.*)'/.exec(await read(name))?.[1] ?? '';
  assert.ok(
    (await read('temporal-server/go.mod')).includes(
      `github.com/temporalio/cli v${await versionIn('temporal-cli.ts')} `,
    ),
  );
  assert.ok(
    (await read('time-skipping-server/pom.xml')).includes(`<version>${await versionIn('time-skipping.ts')}</version>`),
  );
  const { devDependencies } = JSON.parse(await read('../../package.json')) as {
    devDependencies: Record<string, string>;
  };
  assert.ok(
    (await read('time-skipping.ts')).includes(`SDK_VERSION = '${devDependencies['@temporalio/testing'] ?? ''}'`),
  );
  assert.match(await neededGo(), /^1\.\d+/);
});
