import { execFile } from 'node:child_process';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from '../../dev/environment/lock.ts';
import { ROOT } from './compose-file.ts';

const SOURCES = ['client', 'src', 'activities', 'workflows'];
const NEWEST = 'dist/workflow-bundle.js';

/** Runs `npm run build` unless `dist/` is newer than the sources. */
export async function built(): Promise<void> {
  // Test files run concurrently.
  await mkdir(join(ROOT, 'node_modules/.cache'), { recursive: true });
  await withLock(
    join(ROOT, 'node_modules/.cache/built.lock'),
    () => undefined,
    undefined,
    async () => {
      const made = await stat(join(ROOT, NEWEST)).catch(() => undefined);
      if (made && made.mtimeMs > (await lastChange())) return;
      await promisify(execFile)(process.execPath, ['--import', 'tsx', 'dev/build/build.ts'], { cwd: ROOT });
    },
  );
}

async function lastChange(): Promise<number> {
  const times = SOURCES.map(async (folder) => {
    const names = await readdir(join(ROOT, folder), { recursive: true });
    const stats = await Promise.all(names.map((name) => stat(join(ROOT, folder, name))));
    return Math.max(...stats.map(({ mtimeMs }) => mtimeMs));
  });
  return Math.max(...(await Promise.all(times)));
}
