import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import type { Command } from 'commander';
import { makeProgram } from '../../src/main/admin/program.ts';
import { runProgram } from '../../src/main/admin/run.ts';
import { endChild } from '../support/end-child.ts';
import { provided } from '../support/provided.ts';
import { WITHOUT_ENV_FILE } from '../support/without-env-file.ts';

/** A process that runs a command. */
export interface CommandProcess {
  readonly child: ChildProcess;
  /** @returns the output so far */
  readonly out: () => string;
  readonly err: () => string;
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
}

export interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts `sendwright …`, or another program of src/main, as a process with these settings and no others. */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  program = 'admin',
): CommandProcess {
  const child = spawn(process.execPath, [join(provided('TEST_COMPILED'), `src/main/${program}.mjs`), ...args], {
    cwd: WITHOUT_ENV_FILE,
    env: { PATH: process.env['PATH'], ...env },
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, out: () => out, err: () => err, ended };
}

/** Starts a worker with these settings and no others, which has an IPC channel. It is killed at the end of the test. */
export function forkWorker(t: TestContext, fleets: string, env: Readonly<Record<string, string>>): ChildProcess {
  const worker = fork(join(provided('TEST_COMPILED'), 'src/main/worker.mjs'), ['--fleets', fleets], {
    cwd: WITHOUT_ENV_FILE,
    execArgv: [],
    env: { PATH: process.env['PATH'], ...env },
  });
  t.after(() => endChild(worker));
  return worker;
}

/** Runs a command as a process until it ends. @param input its standard input; undefined leaves the pipe open */
export async function runProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input, program }: { input?: string | undefined; program?: string } = { input: '' },
): Promise<Outcome> {
  const { child, ended, out, err } = startCommand(args, env, program);
  if (input !== undefined) child.stdin?.end(input);
  return { code: await ended, out: out(), err: err() };
}

class Exit extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

/** Commands replace globals of this process, so they run one after the other. */
let queue: Promise<unknown> = Promise.resolve();

/** Runs `sendwright …` inside this process, with these settings and no others, since a process takes 0.2 s longer. */
export function command(args: readonly string[], env: Readonly<Record<string, string>>, input = ''): Promise<Outcome> {
  const outcome = queue.then(() => runInside(args, env, input));
  queue = outcome.catch(() => undefined);
  return outcome;
}

async function runInside(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string,
): Promise<Outcome> {
  let [out, err] = ['', ''];
  const program = makeProgram('sendwright');
  capture(program, (text) => (out += text));
  const stdin = Readable.from(input === '' ? [] : [input], { objectMode: false });
  const { env: environment } = process;
  const { log, error: logError } = console;
  const exit = process.exit.bind(process);
  const folder = process.cwd();
  const stdinProperty = Object.getOwnPropertyDescriptor(process, 'stdin') as PropertyDescriptor;
  process.env = { ...env };
  process.chdir(WITHOUT_ENV_FILE);
  process.exit = (code) => {
    throw new Exit(Number(code ?? 0));
  };
  console.log = (line: string) => (out += `${line}\n`);
  console.error = (line: string) => (err += `${line}\n`);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  try {
    return { code: await runProgram(program, args), out, err };
  } catch (error) {
    if (error instanceof Exit) return { code: error.code, out, err };
    throw error;
  } finally {
    process.env = environment;
    process.chdir(folder);
    process.exit = exit;
    Object.assign(console, { log, error: logError });
    Object.defineProperty(process, 'stdin', stdinProperty);
  }
}

/** Commander prints help itself, and then exits. */
function capture(command: Command, write: (text: string) => void): void {
  command.configureOutput({ writeOut: write }).exitOverride(({ exitCode }) => {
    throw new Exit(exitCode);
  });
  for (const each of command.commands) capture(each, write);
}

/** Runs a command that must succeed. @returns the JSON on its standard output */
export async function printed<T = Record<string, unknown>>(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<T> {
  const { code, out, err } = await command(args, env);
  assert.deepEqual([code, err], [0, ''], `${args.join(' ')}: ${err}`);
  return JSON.parse(out) as T;
}

/** Asserts that a command failed with this line on standard error. */
export function assertFailed({ code, out, err }: Outcome, line: string | RegExp): void {
  assert.deepEqual([code, out], [1, ''], err);
  if (typeof line === 'string') assert.equal(err, `${line}\n`);
  else assert.match(err, line);
}

/** Asserts that a command line is not valid: one line about the mistake, and one that names the command's help. */
export async function assertMisused(
  args: readonly string[],
  mistake: string,
  of: string,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const help = ['sendwright', of].join(' ').trimEnd();
  assert.deepEqual(await command(args, env), { code: 2, out: '', err: `${mistake}\nHelp: ${help} --help\n` });
}
