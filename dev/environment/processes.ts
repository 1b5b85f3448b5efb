import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const POLL = 50;

/** A process that an earlier `npm start` left behind, or may have. */
export interface Recorded {
  readonly pid: number;
  /** What its command line holds as long as the pid is still that process, and no other process has. */
  readonly mark: string;
}

/** The command line of a running process; undefined when there is none, or it has ended and waits for its parent. */
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

/** Whether the recorded process still runs: pids are used again, so its command line is asked too. */
export async function stillRuns({ pid, mark }: Recorded): Promise<boolean> {
  return (await commandLine(pid))?.includes(mark) ?? false;
}

/**
 * Ends a process that is not our child: the signal, then SIGKILL for the group it leads when it lives on.
 * @param within milliseconds until SIGKILL
 * @returns whether there was anything to end
 */
export async function endRecorded(recorded: Recorded, signal: NodeJS.Signals, within: number): Promise<boolean> {
  if (!(await stillRuns(recorded))) return false;
  send(recorded.pid, signal);
  if (await ended(recorded, within)) return true;
  killGroup(recorded.pid);
  await ended(recorded, 2_000);
  return true;
}

async function ended(recorded: Recorded, within: number): Promise<boolean> {
  const until = Date.now() + within;
  while (await stillRuns(recorded)) {
    if (Date.now() >= until) return false;
    await sleep(POLL);
  }
  return true;
}

/** Sends a signal. No error for a process that is gone, which macOS reports as EPERM for a group of ended ones. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** SIGKILL for a process that leads a group and for all in it; or for what is left of the group when it has ended. */
export function killGroup(leader: number): void {
  send(-leader, 'SIGKILL');
}
