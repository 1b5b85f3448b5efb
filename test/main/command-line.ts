import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A command line that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly out: () => string;
  readonly err: () => string;
  /** Its exit code, when it has ended. */
  readonly ended: Promise<number | null>;
}

/** Starts `npm run admin -- …` with these settings and no others. */
export function startCommand(args: readonly string[], env: Record<string, string>): Running {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/main/admin.ts', ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, out: () => out, err: () => err, ended };
}

/** Runs a command to its end. */
export async function command(
  args: readonly string[],
  env: Record<string, string>,
): Promise<{ code: number | null; out: string; err: string }> {
  const running = startCommand(args, env);
  return { code: await running.ended, out: running.out(), err: running.err() };
}
