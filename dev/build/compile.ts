import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** An absolute path from one relative to the project's folder. */
export const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Runs TypeScript's compiler on the project of a tsconfig.json. Ends this process when that fails. */
export function compile(project: string, ...options: readonly string[]): void {
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', project, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
