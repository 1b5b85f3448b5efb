import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { UsageError } from '../../src/main/admin/command.ts';
import { makeProgram } from '../../src/main/admin/program.ts';
import { provided } from '../support/provided.ts';

/** A command line that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly out: () => string;
  readonly err: () => string;
  /** Its exit code, when it has ended. */
  readonly ended: Promise<number | null>;
}

/** How a command ended, and what it printed. */
export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const ROOT = join(import.meta.dirname, '../..');
const program = (name: string): string => join(provided('TEST_COMPILED'), `src/main/${name}.mjs`);

/** Starts `sendwright …` with these settings and no others. @param stdin what it may read from */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin: 'ignore' | 'pipe' = 'ignore',
): Running {
  const child = spawn(process.execPath, [program('admin'), ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
    stdio: [stdin, 'pipe', 'pipe'],
  });
  return follow(child);
}

/** Runs a command to its end. */
export async function command(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Outcome> {
  return outcomeOf(startCommand(args, env));
}

/** Runs `npm run migrate` with these settings and no others. */
export async function migrate(env: Readonly<Record<string, string>>): Promise<Outcome> {
  const options = { cwd: ROOT, env: { PATH: process.env['PATH'], ...env } };
  return outcomeOf(follow(spawn(process.execPath, [program('migrate')], options)));
}

function follow(child: ChildProcess): Running {
  let [out, err] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, out: () => out, err: () => err, ended };
}

export async function outcomeOf(running: Running): Promise<Outcome> {
  return { code: await running.ended, out: running.out(), err: running.err() };
}

/** Asserts that a command failed with one line on standard error. */
export function assertFailed({ code, out, err }: Outcome, sentence: string): void {
  assert.deepEqual([code, out, err], [1, '', `${sentence}\n`]);
}

/** Asserts that a command line was refused, with one line about the mistake and one that names the help of the command. */
export function assertMisused({ code, out, err }: Outcome, mistake: string, command: string): void {
  assert.deepEqual([code, out, err], [2, '', `${misuse(mistake, command)}\n`]);
}

/** Asserts the same in this process, which takes less time: for mistakes that are found before the command begins. */
export async function assertRefuses(args: readonly string[], mistake: string, command: string): Promise<void> {
  await assert.rejects(makeProgram('sendwright').parseAsync(args, { from: 'user' }), (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    assert.equal(error.message, misuse(mistake, command));
    return true;
  });
}

function misuse(mistake: string, command: string): string {
  return `${mistake}\nHelp: ${['sendwright', command].join(' ').trimEnd()} --help`;
}
