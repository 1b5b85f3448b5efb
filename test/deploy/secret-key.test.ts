import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { SETTINGS } from '../../src/settings.ts';
import { blocks } from '../support/documents.ts';
import { temporaryFolder } from '../support/folder.ts';
import { ROOT } from '../support/root.ts';
import { writePrograms } from './programs.ts';

const PATH = 'docs/operating.md';
const [FORMER, ...OLDEST] = ['former', 'older', 'oldest'].map((name) => name.padEnd(32, '.')) as [string, ...string[]];

/** The commands of "Replace SECRET_KEY", each of which is run if the one before succeeds. */
async function documentedCommands(): Promise<string[]> {
  const [, text = ''] = (await readFile(join(ROOT, PATH), 'utf8')).split('\n### Replace SECRET_KEY\n');
  const [block] = blocks({ path: PATH, text }, 'sh');
  return block?.text.split('&&').map((command) => command.trim()) ?? assert.fail('there are no commands');
}

interface Installation {
  /** Runs commands of which the last one may be cut off. */
  readonly run: (commands: readonly string[]) => Promise<void>;
  readonly current: () => Promise<string>;
  /** All keys, as the processes read them. */
  readonly keys: () => Promise<readonly string[]>;
}

async function install(t: TestContext): Promise<Installation> {
  const folder = await temporaryFolder(t);
  const path = (...names: string[]) => join(folder, ...names);
  await mkdir(path('secrets'));
  await mkdir(path('deploy'));
  await writeFile(path('deploy', 'restart.sh'), '');
  await writeFile(path('secrets', 'secret_key'), FORMER);
  await writeFile(path('secrets', 'secret_key_old'), OLDEST.join(','));
  const env = { PATH: await writePrograms(folder, { docker: '' }) };
  const read = async (name: string) => (await readFile(path('secrets', name), 'utf8')).replace(/\n$/, '');
  const current = async () => SETTINGS.SECRET_KEY.parse(await read('secret_key'));
  return {
    run: async (commands) => {
      await promisify(execFile)('sh', ['-c', commands.join(' && ')], { cwd: folder, env });
    },
    current,
    keys: async () => [await current(), ...SETTINGS.SECRET_KEY_OLD.parse(await read('secret_key_old'))],
  };
}

test('the documented replacement of SECRET_KEY keeps every key, also if it is interrupted and repeated', async (t) => {
  const commands = await documentedCommands();
  for (let count = 1; count <= commands.length; count++) {
    const { run, current, keys } = await install(t);
    const used = new Set([FORMER, ...OLDEST]);
    for (const part of [commands, commands.slice(0, count), commands]) {
      await run(part);
      used.add(await current());
      const kept = await keys();
      assert.deepEqual(
        [...used].filter((key) => !kept.includes(key)),
        [],
        `after command ${count}: ${part.at(-1)}`,
      );
    }
    assert.ok(used.size >= 2 + OLDEST.length + 1, 'each run replaces the key');
  }
});
