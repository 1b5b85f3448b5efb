import { execFile } from 'node:child_process';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from '../../dev/environment/lock.ts';
import { ROOT } from './root.ts';

/** The files and folders that the build reads. */
const SOURCES = [
  ...['activities', 'client', 'dev/build', 'docs', 'src', 'workflows'],
  ...['package.json', 'package-lock.json', 'tsconfig.json'],
];
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
  const paths = await Promise.all(SOURCES.map((source) => listPaths(join(ROOT, source))));
  const stats = await Promise.all(paths.flat().map((path) => stat(path)));
  return Math.max(...stats.map(({ mtimeMs }) => mtimeMs));
}

/** @returns a path and, if it is a folder, all paths in it. The deletion of a file changes only the time of its folder. */
async function listPaths(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = await readdir(path, { recursive: true });
  return [path, ...names.map((name) => join(path, name))];
}
