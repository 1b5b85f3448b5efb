import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { readComposeFile } from '../support/compose-file.ts';

/** The folder and the environment of a run's commands, and its output. */
export interface Environment {
  /** A copy of this project, in which secrets and backups are written. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Unique to this run, so that other installations on the engine are not touched. */
  readonly project: string;
  readonly print: (line: string) => void;
}

const MAX_ERROR_LINES = 40;

/** Runs a command. @returns its standard output @throws Error with the last lines of both streams */
export async function run(
  environment: Environment,
  command: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const child = spawn(command, args, {
    cwd: environment.folder,
    env: environment.env,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined).end(input);
  const output: Buffer[] = [];
  const lines: string[] = [];
  const keep = (line: string): void => {
    if (lines.push(line) > MAX_ERROR_LINES) lines.shift();
  };
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', keep);
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} ended with ${String(code)}:\n${lines.join('\n')}`);
  return Buffer.concat(output).toString();
}

export function compose(environment: Environment, ...args: string[]): Promise<string> {
  return run(environment, 'docker', ['compose', ...args]);
}

/** The commands of a block of documentation, as a reader would paste them into a shell. */
export function shell(environment: Environment, commands: string): Promise<string> {
  return run(environment, 'sh', ['-eu', '-c', commands]);
}

/** Runs the administrator's command line in a container of the API, and reads the JSON that it prints. */
export async function admin(environment: Environment, ...args: string[]): Promise<Record<string, string>> {
  const printed = await compose(environment, 'exec', '-T', 'api', 'node', 'dist/src/main/admin.js', ...args);
  return JSON.parse(printed) as Record<string, string>;
}

export interface ContainerState {
  readonly ID: string;
  readonly Name: string;
  readonly Service: string;
  readonly Image: string;
  /** `running`, `exited`, `restarting` and others. */
  readonly State: string;
  /** Empty without a health check. */
  readonly Health: string;
  readonly ExitCode: number;
}

const declared = Object.entries(readComposeFile({}).services);
/** Services that end once their task is done. */
export const ONCE = declared.filter(([, { restart }]) => restart === 'no').map(([name]) => name);
/** How many processes have metrics: each replica of the API and of the workers. */
export const SCRAPED = declared
  .filter(([, { command }]) => /main\/(?:api|worker)\.js/.test(String(command)))
  .reduce((count, [, { deploy }]) => count + (deploy?.replicas ?? 1), 0);
/** How many containers the demo keeps running. */
export const CONTAINERS = declared
  .filter(([name, { profiles = ['demo'] }]) => !ONCE.includes(name) && profiles.includes('demo'))
  .reduce((count, [, { deploy }]) => count + (deploy?.replicas ?? 1), 0);

/** All containers of the project, or of one service. */
export async function containers(environment: Environment, ...services: string[]): Promise<ContainerState[]> {
  const printed = await compose(environment, 'ps', '--all', '--format', 'json', ...services);
  return printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ContainerState);
}

/** Waits until every container runs and is healthy, and tasks that run once have ended with 0. */
export async function allHealthy(environment: Environment): Promise<void> {
  await until('all containers are healthy', 300_000, async () => {
    const lasting = (await containers(environment)).filter(({ Service }) => !ONCE.includes(Service));
    const pending = lasting.filter(({ State, Health }) => State !== 'running' || !['', 'healthy'].includes(Health));
    if (lasting.length === CONTAINERS && pending.length === 0) return undefined;
    return `${lasting.length} of ${CONTAINERS} containers; ${pending.map(({ Name, State, Health }) => [Name, State, Health].join(' ')).join(', ')}`;
  });
}

/**
 * Polls until a check passes.
 * @param check returns what is missing, or undefined
 */
export async function until(what: string, withinMs: number, check: () => Promise<string | undefined>): Promise<void> {
  const end = Date.now() + withinMs;
  for (;;) {
    const missing = await check().catch((error: unknown) => (error as Error).message);
    if (missing === undefined) return;
    if (Date.now() > end) throw new Error(`${what}: not within ${withinMs / 1_000} s; ${missing}`);
    await sleep(500);
  }
}

/** Prints the memory that each running container uses. */
export async function printMemory(environment: Environment): Promise<void> {
  const ids = (await containers(environment)).filter(({ State }) => State === 'running').map(({ ID }) => ID);
  const format = '{{.Name}}\t{{.MemUsage}}\t{{.CPUPerc}}';
  const printed = await run(environment, 'docker', ['stats', '--no-stream', '--format', format, ...ids]);
  for (const line of printed.trim().split('\n').sort()) {
    const [name = '', memory = '', cpu = ''] = line.split('\t');
    environment.print(
      `  ${name.replace(`${environment.project}-`, '').padEnd(20)} ${memory.padStart(22)} ${cpu.padStart(8)}`,
    );
  }
}

/** Prints the duration of an action. */
export async function timed<T>(environment: Environment, what: string, act: () => Promise<T>): Promise<T> {
  const began = Date.now();
  const result = await act();
  environment.print(`${what}: ${((Date.now() - began) / 1_000).toFixed(1)} s`);
  return result;
}
