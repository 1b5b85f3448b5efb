import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Ends a process at once, as a machine that fails does, and waits until it is gone. Nothing when it has ended before. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
