import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processes } from './stack.ts';

/** A clock tick, the unit in which Linux counts CPU time. */
const TICK_US = 10_000;
const POLL_INTERVAL_MS = 100;

type Use = Record<string, number>;

/** Returns the resident memory of a process in megabytes; 0 if the system does not report it. */
async function resident(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid ?? 0}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1_024;
}

/** Returns the maximum memory of an API and of a worker until `signal` aborts, in megabytes. */
export async function watchMemory(
  processes: readonly Processes[],
  signal: AbortSignal,
): Promise<{ api: number; worker: number }> {
  let [api, worker] = [0, 0];
  while (!signal.aborted) {
    for (const own of processes) {
      api = Math.max(api, await resident(own.api));
      worker = Math.max(worker, await resident(own.worker));
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
  return { api, worker };
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Microseconds of CPU time, including child processes that have ended. */
  readonly used: number;
}

async function listProcesses(): Promise<Process[]> {
  const processes: Process[] = [];
  for (const name of await readdir('/proc').catch(() => [])) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    // The fields after the command, which may contain any text: state, parent and, from the twelfth on, the times.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0);
    if (stat !== '') processes.push({ pid: Number(name), parent: Number(fields[1]), used: ticks * TICK_US });
  }
  return processes;
}

/**
 * Returns the microseconds of CPU time that each part has used since it started, summed over its processes; nothing if the
 * system does not report it.
 */
export async function processorTime(processes: readonly Processes[]): Promise<Use> {
  const running = await listProcesses();
  const use: Use = {};
  for (const [part, pid] of processes.flatMap(Object.entries<number | undefined>)) {
    const own = running.filter((each) => each.pid === pid || each.parent === pid);
    use[part] = own.reduce((sum, { used }) => sum + used, use[part] ?? 0);
  }
  return use;
}

/**
 * Returns the microseconds of CPU time of Postgres's open connections, as `postgres/<database>`. Closed connections are not
 * counted.
 * @param postmaster the server's process
 */
export async function postgresTime(postmaster: number | undefined): Promise<Use> {
  const use: Use = {};
  for (const { pid, parent, used } of await listProcesses()) {
    const title = parent === postmaster ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : '';
    // The process title of a connection: `postgres: user database address(port) state`.
    const database = /^postgres: \S+ (\S+) [\d.]+\(/.exec(title)?.[1];
    const part = `postgres/${database}`;
    if (database !== undefined) use[part] = (use[part] ?? 0) + used;
  }
  return use;
}

/** Returns the CPU time between two samples, per part and for each of `count` emails. */
export function perEmail(before: Use, after: Use, count: number): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after).map(([part, use]) => [`${part} µs`, (use - (before[part] ?? 0)) / count]),
  );
}
