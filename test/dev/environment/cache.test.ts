import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createOnce } from '../../../dev/environment/cache.ts';
import { temporaryFolder } from '../../support/folder.ts';

const MODULE = fileURLToPath(new URL('../../../dev/environment/cache.ts', import.meta.url));
const options = { onWait: () => undefined };

test('builds a file in one of several concurrent processes, and shows it when it is complete', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'cache', 'thing');
  const makers = join(folder, 'makers');
  const code = `
    import { appendFileSync, readFileSync } from 'node:fs';
    import { writeFile } from 'node:fs/promises';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { createOnce } from '${MODULE}';
    await createOnce('${path}', async (workspace) => {
      appendFileSync('${makers}', 'made\\n');
      await writeFile(workspace + '/thing', 'half ');
      await sleep(300);
      await writeFile(workspace + '/thing', 'and half', { flag: 'a' });
      return workspace + '/thing';
    }, { onWait() {} });
    process.exit(readFileSync('${path}', 'utf8') === 'half and half' ? 0 : 1)`;
  const codes = await Promise.all(
    [1, 2, 3].map(async () => {
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code]);
      return ((await once(child, 'exit')) as [number])[0];
    }),
  );
  assert.deepEqual(codes, [0, 0, 0]);
  assert.equal(await readFile(makers, 'utf8'), 'made\n');
  assert.deepEqual(await readdir(join(folder, 'cache')), ['thing']);
});

test('leaves nothing after a failed build, and builds again the next time', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'thing');
  const failing = createOnce(
    path,
    async (workspace) => {
      await writeFile(join(workspace, 'half'), '');
      throw new Error('out of luck');
    },
    options,
  );
  await assert.rejects(failing, /out of luck/);
  assert.deepEqual(await readdir(folder), []);
  await createOnce(path, async (workspace) => workspace, options);
  assert.deepEqual(await readdir(folder), ['thing']);
});
