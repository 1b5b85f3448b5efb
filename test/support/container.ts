import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ContainerOptions {
  readonly name: string;
  readonly service: string;
  readonly command: readonly string[];
  /** As in Compose: `CMD`, `node` and arguments; null without a health check. */
  readonly healthcheck: readonly string[] | null;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly log: string;
}

/** A process that runs like a container: with its command, only its environment, and its health check. */
export interface Container extends Pick<ContainerOptions, 'name' | 'service' | 'env'> {
  readonly start: () => Promise<void>;
  /** Resolves when its health check passes. Rejects if it ends before, or at the timeout. */
  readonly healthy: () => Promise<void>;
  /** Resolves when it has ended with 0. */
  readonly completed: () => Promise<void>;
  /** SIGTERM. @returns its exit code, or the signal that ended it */
  readonly stop: () => Promise<number | string>;
  readonly kill: () => Promise<void>;
}

/** A container that is not healthy after this time hangs. It is no limit of speed: the machine may be busy. */
const HEALTHY_TIMEOUT_MS = 300_000;
/** Not shorter, since each check is a process, which slows down those that start. */
const CHECK_INTERVAL_MS = 1_000;
const STOP_TIMEOUT_MS = 45_000;

export function makeContainer(options: ContainerOptions): Container {
  const { name, command, healthcheck, env, cwd, log } = options;
  let child: ChildProcess | undefined;
  let ended: Promise<number | string> | undefined;
  let code: number | string | undefined;

  const last = () => readFileSync(log, 'utf8').split('\n').slice(-15).join('\n');

  async function passes(): Promise<boolean> {
    if (healthcheck === null) return true;
    const probe = spawn(process.execPath, nodeArgs(healthcheck.slice(1)), { cwd, env, stdio: 'ignore' });
    const [status] = (await once(probe, 'exit')) as [number | null];
    return status === 0;
  }

  return {
    name,
    service: options.service,
    env,
    async start() {
      const output = openSync(log, 'a');
      code = undefined;
      // In the process group of the test, so that it ends when the run is interrupted.
      child = spawn(process.execPath, nodeArgs(command), { cwd, env, stdio: ['ignore', output, output] });
      closeSync(output);
      ended = once(child, 'exit').then(([status, signal]) => (code = (status ?? signal) as number | string));
      await once(child, 'spawn');
    },
    async healthy() {
      const until = Date.now() + HEALTHY_TIMEOUT_MS;
      while (!(await passes())) {
        if (code !== undefined) throw new Error(`${name} ended with ${code}:\n${last()}`);
        if (Date.now() > until) throw new Error(`${name} is not healthy:\n${last()}`);
        await sleep(CHECK_INTERVAL_MS);
      }
    },
    async completed() {
      const status = await ended;
      if (status !== 0) throw new Error(`${name} ended with ${String(status)}:\n${last()}`);
    },
    async stop() {
      child?.kill('SIGTERM');
      return Promise.race([ended ?? 'not started', sleep(STOP_TIMEOUT_MS, 'still runs', { ref: false })]);
    },
    async kill() {
      child?.kill('SIGKILL');
      await ended;
    },
  };
}

function nodeArgs([program, ...args]: readonly string[]): string[] {
  if (program !== 'node') throw new Error(`only node can be run here, not ${String(program)}`);
  return args;
}
