import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Resolves a path relative to the project's folder. */
export const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Writes the client's types, which are not in git. Ends this process if that fails. */
export function writeClientTypes(): void {
  runProgram('dev/build/client-types.ts');
}

/** Runs a TypeScript program of the project. Ends this process if that fails. */
export function runProgram(path: string): void {
  run(...process.execArgv, inRoot(path));
}

/** Runs TypeScript's compiler on the project of a tsconfig.json. Ends this process if that fails. */
export function compile(project: string, ...options: readonly string[]): void {
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  run(compiler, '-p', project, ...options);
}

function run(...args: readonly string[]): void {
  const { status } = spawnSync(process.execPath, args, { cwd: inRoot(''), stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
