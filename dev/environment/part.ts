import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Account } from './command.ts';
import { reportsPortInUse } from './ports.ts';
import { makeDeadline } from '../../src/lib/deadline.ts';
import { untilAborted } from '../../src/lib/until-aborted.ts';
import { Problem } from './problem.ts';
import { killGroup, send } from './processes.ts';

export interface PartSpec<Facts> {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly account?: Account | undefined;
  /** Unique in its command line; identifies an orphan at the next start. */
  readonly mark: string;
  /** The file to which its output is written. */
  readonly log: string;
  /** Such `node` processes report by IPC that they are ready, and end when the channel closes. */
  readonly ipc: boolean;
  /** Resolves when the part is ready; `message` is its first IPC message. Rejects when `signal` aborts. */
  readonly waitUntilReady: (message: Promise<unknown>, signal: AbortSignal) => Promise<Facts>;
  /** Signals with the milliseconds until the next one. SIGKILL follows the last. */
  readonly stop: readonly (readonly [NodeJS.Signals, number])[];
}

/** Delays of restarts, in milliseconds. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
  /** After this uptime the delay restarts from `firstMs`. */
  readonly resetAfterMs: number;
}

export interface Watcher {
  readonly onPid: (pid: number) => void;
  /** Called when it has ended; it is restarted after `delayMs`. */
  readonly onDeath: (how: string, lastLines: string[], delayMs: number) => void;
  /** Called when it is ready again, `downtimeMs` after its end. */
  readonly onReady: (downtimeMs: number) => void;
}

/** A part ended before it was ready, or did not become ready in time. */
export class PartFailed extends Problem {
  /** True if another process took its port between choice and start; the caller tries another port. */
  readonly portTaken: boolean;

  constructor(how: string, lastLines: string[]) {
    super([`${how}; it printed last:`, ...lastLines].join('\n    '));
    this.portTaken = reportsPortInUse(lastLines.join('\n'));
  }
}

export interface Part<Facts> {
  readonly facts: Facts;
  readonly stop: () => Promise<void>;
}

interface RunningProcess {
  readonly child: ChildProcess;
  readonly message: Promise<unknown>;
  /** Resolves to a description of how it ended. */
  readonly ended: Promise<string>;
  /** Aborts when it ends. */
  readonly endedSignal: AbortSignal;
  readonly startedAt: number;
  /** The offset of its output in the log. */
  readonly logOffset: number;
}

const READY_TIMEOUT_MS = 180_000;
const TAIL_BYTES = 8_192;
const TAIL_LINES = 12;

/**
 * Starts a part as a process and restarts it if it ends after it was ready, with a delay that doubles. It leads its own
 * process group, so Ctrl-C in the terminal reaches only the process that stops the parts in their order.
 * @param stopping ends it, also while it starts
 * @throws PartFailed if it ends before it is ready
 */
export async function startPart<Facts>(
  spec: PartSpec<Facts>,
  backOff: BackOff,
  watcher: Watcher,
  stopping: AbortSignal,
): Promise<Part<Facts>> {
  let running = await spawnProcess(spec, watcher);
  try {
    const facts = await waitUntilReady(spec, running, stopping);
    const restarting = restartWhenEnded();
    let stopped: Promise<void> | undefined;
    return { facts, stop: () => (stopped ??= stopProcess(spec, running).then(() => restarting)) };
  } catch (error) {
    const endedByItself = running.endedSignal.aborted;
    const slow = (error as Error).name === 'TimeoutError';
    await stopProcess(spec, running);
    if (!endedByItself && !slow) throw error;
    const how = slow ? `did not serve within ${READY_TIMEOUT_MS / 1_000} s` : await running.ended;
    throw new PartFailed(how, await lastLines(spec.log, running.logOffset));
  }

  async function restartWhenEnded(): Promise<void> {
    let delayMs = backOff.firstMs;
    for (;;) {
      const how = await running.ended;
      if (stopping.aborted) return;
      const endedAt = Date.now();
      if (endedAt - running.startedAt >= backOff.resetAfterMs) delayMs = backOff.firstMs;
      watcher.onDeath(how, await lastLines(spec.log, running.logOffset), delayMs);
      await sleep(delayMs, undefined, { signal: stopping }).catch(() => undefined);
      delayMs = Math.min(delayMs * 2, backOff.maxMs);
      if (isAborted(stopping)) return;
      running = await spawnProcess(spec, watcher);
      if (isAborted(stopping)) return stopProcess(spec, running);
      waitUntilReady(spec, running, stopping).then(
        () => watcher.onReady(Date.now() - endedAt),
        () => undefined,
      );
    }
  }
}

/** A function, since TypeScript would keep the narrowing of `aborted` across an await. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

async function spawnProcess(spec: PartSpec<unknown>, watcher: Watcher): Promise<RunningProcess> {
  // The log folder may have been deleted while the part ran.
  await mkdir(dirname(spec.log), { recursive: true });
  const log = await open(spec.log, 'a', 0o600);
  try {
    const logOffset = (await log.stat()).size;
    const child = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.env,
      ...spec.account,
      detached: true,
      stdio: ['ignore', log.fd, log.fd, ...(spec.ipc ? (['ipc'] as const) : [])],
    });
    const endedController = new AbortController();
    const message = new Promise<unknown>((resolve) => child.once('message', resolve));
    const ended = new Promise<string>((resolve) => {
      child.on('error', (error) => {
        if (child.pid === undefined) resolve(`could not be run (${error.message})`);
      });
      child.once('exit', (code, signal) => resolve(signal ? `was ended by ${signal}` : `ended with ${code ?? '?'}`));
    });
    void ended.then(() => {
      // Child processes, such as a compiler, are in its group and would outlive it.
      if (child.pid !== undefined) killGroup(child.pid);
      endedController.abort();
    });
    if (child.pid !== undefined) watcher.onPid(child.pid);
    return { child, message, ended, endedSignal: endedController.signal, startedAt: Date.now(), logOffset };
  } finally {
    await log.close();
  }
}

async function waitUntilReady<Facts>(
  spec: PartSpec<Facts>,
  running: RunningProcess,
  stopping: AbortSignal,
): Promise<Facts> {
  const signal = makeDeadline(READY_TIMEOUT_MS, [running.endedSignal, stopping]);
  return untilAborted(spec.waitUntilReady(running.message, signal), signal);
}

async function stopProcess(spec: PartSpec<unknown>, { child, ended, endedSignal }: RunningProcess): Promise<void> {
  if (child.pid === undefined) return;
  for (const [signal, within] of spec.stop) {
    if (endedSignal.aborted) return;
    send(child.pid, signal);
    await Promise.race([ended, sleep(within, undefined, { signal: endedSignal, ref: false }).catch(() => undefined)]);
  }
  if (!endedSignal.aborted) killGroup(child.pid);
  await ended;
}

/** Returns the last lines of a log after the offset `start`, or of the whole log if it was trimmed since. */
async function lastLines(path: string, start: number): Promise<string[]> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return [];
  try {
    const { size } = await file.stat();
    const from = Math.max(start <= size ? start : 0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - from), position: from });
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n');
    return lines.filter((line) => line.trim() !== '').slice(-TAIL_LINES);
  } finally {
    await file.close();
  }
}
