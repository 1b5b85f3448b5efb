import { execFile } from 'node:child_process';
import type { TestContext } from 'node:test';

/** Runs a program. @returns what it prints */
export async function run(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { env: { ...process.env, ...env }, timeout: 300_000 }, (error, out, err) => {
      if (error) reject(new Error(`${program} ${args.join(' ')}: ${out}${err}`, { cause: error }));
      else resolve(out);
    });
  });
}

/** Skips a test whose language is not installed, and prints that to be seen in the output of a whole run. */
export async function isInstalled(
  t: TestContext,
  name: string,
  probe: readonly [string, ...string[]],
): Promise<boolean> {
  const isThere = await run(probe).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    console.error(`NOT RUN: the ${name} programs of the documentation, because ${probe[0]} is missing`);
    t.skip(`${probe[0]} is not installed`);
  }
  return isThere;
}
