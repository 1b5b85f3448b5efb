import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ContainerOptions {
  readonly name: string;
  readonly service: string;
  /** Begins with `node`. */
  readonly command: readonly string[];
  /** As in Compose: `CMD` and words, the first of which is `node`; null without one. */
  readonly healthcheck: readonly string[] | null;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly log: string;
}

/** A process that is run as a container would be: by its command, with its environment alone, and judged by its health check. */
export interface Container extends Pick<ContainerOptions, 'name' | 'service' | 'env'> {
  readonly start: () => Promise<void>;
  /** Resolves when its health check passes. Rejects when it ends before, or takes too long. */
  readonly healthy: () => Promise<void>;
  /** Resolves when it has ended with 0. */
  readonly completed: () => Promise<void>;
  /** SIGTERM. @returns its exit code, or the signal that ended it */
  readonly stop: () => Promise<number | string>;
  readonly kill: () => Promise<void>;
}

const HEALTHY_WITHIN = 90_000;
const ENDS_WITHIN = 45_000;

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
      // Of the test's own group, so that it goes when the run is broken off.
      child = spawn(process.execPath, nodeArgs(command), { cwd, env, stdio: ['ignore', output, output] });
      closeSync(output);
      ended = once(child, 'exit').then(([status, signal]) => (code = (status ?? signal) as number | string));
      await once(child, 'spawn');
    },
    async healthy() {
      const until = Date.now() + HEALTHY_WITHIN;
      while (!(await passes())) {
        if (code !== undefined) throw new Error(`${name} ended with ${code}:\n${last()}`);
        if (Date.now() > until) throw new Error(`${name} is not healthy:\n${last()}`);
        await sleep(250);
      }
    },
    async completed() {
      const status = await ended;
      if (status !== 0) throw new Error(`${name} ended with ${String(status)}:\n${last()}`);
    },
    async stop() {
      child?.kill('SIGTERM');
      return Promise.race([ended ?? 'not started', sleep(ENDS_WITHIN, 'still runs', { ref: false })]);
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
