import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Part, PartFailed, type PartSpec, startPart } from '../../dev/environment/part.ts';
import { send } from '../../dev/environment/processes.ts';
import type { Supervisor } from '../../dev/environment/supervisor.ts';
import { type PartName, PARTS } from '../../src/main/dev-file.ts';

/** Supervised processes that can be disturbed. */
export interface Parts extends Supervisor {
  /** kill -9. It is started again. */
  readonly kill: (name: PartName) => void;
  /**
   * Limits the memory of a process to what it has, so that an allocation fails and ends it. It is started again without the
   * limit.
   */
  readonly exhaustMemory: (name: PartName) => void;
  /** Resolves when the process dies, with how it ended. */
  readonly awaitExit: (name: PartName) => Promise<string>;
  /** Stops a process with its descendants by SIGSTOP while `work` runs. */
  readonly freezeWhile: (name: PartName, work: () => unknown) => Promise<void>;
  /** Stops a process with its descendants by SIGSTOP, for `ms`. */
  readonly freeze: (name: PartName, ms: number) => Promise<void>;
  /** kill -9; it is started again after `ms` and after `meanwhile`. Resolves when it serves. */
  readonly stopFor: (name: PartName, ms: number, meanwhile?: () => Promise<void>) => Promise<void>;
  /** Sends a signal that ends it. It is started again. @returns how it ended */
  readonly end: (name: PartName, signal: NodeJS.Signals) => Promise<Ending>;
  /** Resolves when all of them serve. */
  readonly serving: () => Promise<void>;
}

export interface Ending {
  /** As in `ended with 0`. */
  readonly how: string;
  readonly ms: number;
}

interface Entry {
  readonly spec: PartSpec<unknown>;
  readonly part: Part<unknown>;
  readonly stopping: AbortController;
  pid: number;
  serves: boolean;
  onDeath: (how: string) => void;
}

/** Restarts quickly and forever. */
const BACK_OFF_MS = { firstMs: 200, maxMs: 1_000, resetAfterMs: 5_000 };
const START_TIMEOUT_MS = 180_000;

/** @param print receives a line for every death and recovery */
export function makeParts(print: (line: string) => void): Parts {
  const entries = new Map<PartName, Entry>();
  let isOver = false;

  function entryOf(name: PartName): Entry {
    const entry = entries.get(name);
    if (!entry) throw new Error(`there is no ${name}`);
    return entry;
  }

  async function start<Facts>(name: PartName, spec: PartSpec<Facts>): Promise<Facts> {
    if (isOver) throw new Error('stopping');
    const stopping = new AbortController();
    const state = { pid: 0, serves: false, onDeath: () => undefined } as Pick<Entry, 'pid' | 'serves' | 'onDeath'>;
    const watcher = {
      onPid: (pid: number) => void (state.pid = pid),
      onDeath(how: string) {
        state.serves = false;
        print(`  ${name} ${how}`);
        state.onDeath(how);
      },
      onReady(ms: number) {
        state.serves = true;
        print(`  ${name} serves again after ${(ms / 1_000).toFixed(1)} s`);
      },
    };
    const part = await startPart(spec, BACK_OFF_MS, watcher, stopping.signal);
    state.serves = true;
    entries.set(name, Object.assign(state, { spec, part, stopping }));
    return part.facts;
  }

  /** Repeats the start, since a part may end before it serves while another one is stopped. */
  async function startRepeatedly(name: PartName, spec: PartSpec<unknown>): Promise<void> {
    const until = Date.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await start(name, spec);
        return;
      } catch (error) {
        if (!(error instanceof PartFailed) || Date.now() > until) throw error;
        print(`  ${name} did not start; again`);
        await sleep(BACK_OFF_MS.firstMs);
      }
    }
  }

  async function serving(): Promise<void> {
    const until = Date.now() + START_TIMEOUT_MS;
    for (;;) {
      const missing = [...entries].filter(([, { serves }]) => !serves).map(([name]) => name);
      if (missing.length === 0) return;
      if (Date.now() > until) throw new Error(`not back after ${START_TIMEOUT_MS / 1_000} s: ${missing.join(', ')}`);
      await sleep(20);
    }
  }

  function death(name: PartName): Promise<string> {
    const entry = entryOf(name);
    return new Promise((resolve) => (entry.onDeath = resolve));
  }

  async function freezeWhile(name: PartName, work: () => unknown): Promise<void> {
    const pids = family(entryOf(name).pid);
    for (const pid of pids) send(pid, 'SIGSTOP');
    try {
      await work();
    } finally {
      for (const pid of pids) send(pid, 'SIGCONT');
    }
  }

  return {
    start,
    serving,
    freezeWhile,
    kill(name) {
      const entry = entryOf(name);
      entry.serves = false;
      send(entry.pid, 'SIGKILL');
    },
    exhaustMemory(name) {
      const { pid } = entryOf(name);
      const [, kilobytes = '0'] = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      execFileSync('prlimit', ['--pid', String(pid), `--as=${Number(kilobytes) * 1_024}`]);
    },
    awaitExit: death,
    freeze: (name, ms) => freezeWhile(name, () => sleep(ms)),
    async stopFor(name, ms, meanwhile) {
      const entry = entryOf(name);
      const { spec, part, stopping, pid } = entry;
      entry.serves = false;
      stopping.abort();
      send(pid, 'SIGKILL');
      await part.stop();
      await sleep(ms);
      await meanwhile?.();
      await startRepeatedly(name, spec);
    },
    async end(name, signal) {
      const entry = entryOf(name);
      const began = Date.now();
      const died = death(name);
      entry.serves = false;
      send(entry.pid, signal);
      return { how: await died, ms: Date.now() - began };
    },
    async stop(names) {
      if (names === undefined) isOver = true;
      const stopping = PARTS.filter((name) => names?.includes(name) ?? true).flatMap((name) => entries.get(name) ?? []);
      for (const entry of stopping) {
        entry.stopping.abort();
        for (const pid of family(entry.pid)) send(pid, 'SIGCONT');
      }
      for (const { part } of stopping) await part.stop();
    },
  };
}

/** A process and its descendants. */
function family(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
    return [pid, ...children.flatMap((child) => family(Number(child)))];
  } catch {
    return [pid];
  }
}
