import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const POLL_INTERVAL_MS = 50;

/** A process of an earlier `npm start`, which may still run. */
export interface RecordedProcess {
  readonly pid: number;
  /** Unique in its command line, since pids are reused. */
  readonly mark: string;
}

/** Returns the command line of a process; undefined if it does not exist or is a zombie. */
export async function commandLine(pid: number): Promise<string | undefined> {
  try {
    // `ps` is not part of slim Linux images.
    const text =
      process.platform === 'linux'
        ? (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
        : (await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout;
    return text.trim() || undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the start time of a process, which distinguishes it from others with the same pid. Its format depends on the system.
 * Undefined if the process does not exist, is a zombie or cannot be examined.
 */
export async function startTime(pid: number): Promise<string | undefined> {
  try {
    if (process.platform === 'linux') {
      // proc_pid_stat(5): the name in parentheses may contain spaces; behind it are the state and fields 4 and following.
      const [, fields = ''] = /.*\) (.*)/s.exec(await readFile(`/proc/${pid}/stat`, 'utf8')) ?? [];
      const [state = 'X', ...others] = fields.split(' ');
      return 'ZX'.includes(state) ? undefined : others[22 - 4];
    }
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { env });
    const [, state, startedAt] = /^\s*(\S+)\s+(.+)/.exec(stdout) ?? [];
    return state?.startsWith('Z') ? undefined : startedAt?.trim();
  } catch {
    return undefined;
  }
}

/** Returns true if a process has this pid; it may be a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export async function stillRuns({ pid, mark }: RecordedProcess): Promise<boolean> {
  return (await commandLine(pid))?.includes(mark) ?? false;
}

/**
 * Ends a process that is not our child: sends the signal, then SIGKILL to its process group.
 * @param within milliseconds until SIGKILL
 * @returns true if it was running
 */
export async function endRecorded(recorded: RecordedProcess, signal: NodeJS.Signals, within: number): Promise<boolean> {
  if (!(await stillRuns(recorded))) return false;
  send(recorded.pid, signal);
  if (await hasEndedWithin(recorded, within)) return true;
  killGroup(recorded.pid);
  await hasEndedWithin(recorded, 2_000);
  return true;
}

async function hasEndedWithin(recorded: RecordedProcess, within: number): Promise<boolean> {
  const until = Date.now() + within;
  while (await stillRuns(recorded)) {
    if (Date.now() >= until) return false;
    await sleep(POLL_INTERVAL_MS);
  }
  return true;
}

/** Sends a signal. Ignores a process that has ended, which macOS reports as EPERM for a group. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Kills a process group, also if its leader has ended. */
export function killGroup(leader: number): void {
  send(-leader, 'SIGKILL');
}
