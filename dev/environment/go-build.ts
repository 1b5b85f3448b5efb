import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { CommandError, run } from './command.ts';
import type { Step } from './progress.ts';

/** The Go module that pins versions and checksums of the build. */
const MODULE = fileURLToPath(new URL('temporal-server/', import.meta.url));

/**
 * Builds one program of the Go module with the Go on PATH, which takes minutes the first time.
 * @param program its package, such as `github.com/temporalio/cli/cmd/temporal`
 * @param ldflags linker flags besides those that omit debug information
 */
export async function goBuild(
  program: string,
  ldflags: string,
  destination: string,
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  let packages = 0;
  const onLine = (line: string) => {
    if (!line.startsWith('go: ')) packages++;
    step.detail(packages === 0 ? line : `${packages} packages compiled, now ${line}`);
  };
  // -v prints each package as it is compiled.
  const flags = ['-v', '-trimpath', '-tags', 'disable_grpc_modules', '-ldflags', `-s -w ${ldflags}`];
  await run('go', ['build', ...flags, '-o', destination, program], {
    cwd: MODULE,
    env: goEnvironment(),
    signal,
    onLine,
  });
}

/** Returns the Go version in the module's go.mod. */
export async function neededGo(): Promise<string> {
  const version = /^go (\S+)$/m.exec(await readFile(`${MODULE}go.mod`, 'utf8'))?.[1];
  if (version === undefined) throw new Error('go.mod has no go line');
  return version;
}

/** @throws Error if Go is not on PATH or too old for the module */
export async function checkGo(signal: AbortSignal | undefined): Promise<void> {
  const needed = await neededGo();
  let found: string;
  try {
    // Runs outside the module, where an older Go may refuse any command.
    found = (await run('go', ['env', 'GOVERSION'], { cwd: tmpdir(), env: goEnvironment(), signal }))
      .trim()
      .replace(/^go/, '');
  } catch (error) {
    if (error instanceof CommandError && error.code === 'ENOENT') {
      throw new Error('Go is not installed', { cause: error });
    }
    throw error;
  }
  if (!isAtLeast(found, needed)) throw new Error(`Go ${needed} or newer is needed and this is ${found}`);
}

/** Overrides the user's settings that would change the build; those for module downloads stay. */
function goEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly', GOWORK: 'off' };
}

/** Compares the numbers of versions and ignores suffixes: `1.26.8` is at least `1.26.4`. */
export function isAtLeast(version: string, needed: string): boolean {
  const numbers = (text: string) => (/^[\d.]+/.exec(text)?.[0] ?? '').split('.').map(Number);
  const have = numbers(version);
  for (const [index, number] of numbers(needed).entries()) {
    const other = have[index] ?? 0;
    if (other !== number) return other > number;
  }
  return true;
}
