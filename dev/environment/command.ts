import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { killGroup } from './processes.ts';

/** The user and group that a process runs as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly account?: Account | undefined;
  /** Ends the command and all processes that it started. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each line of both streams. */
  readonly onLine?: (line: string) => void;
}

/** A command failed; the message contains its last lines. */
export class CommandError extends Error {
  /** Set if the command could not be started, such as ENOENT. */
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** Returns true if a promise is fulfilled, false if it is rejected. */
export function isFulfilled(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

const MAX_ERROR_LINES = 20;

/**
 * Runs a command in its own process group, so a terminal's Ctrl-C does not reach it directly.
 * @returns the output of both streams
 * @throws CommandError if it cannot be started or does not exit with 0, AbortError if `signal` ended it
 */
export async function run(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  options.signal?.throwIfAborted();
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    ...options.account,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const end = () => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  options.signal?.addEventListener('abort', end, { once: true });

  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      lines.push(line);
      options.onLine?.(line);
    });
  }
  try {
    const code = await new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
      child.on('error', (error: NodeJS.ErrnoException) => {
        reject(new CommandError(`${command} could not be run: ${error.message}`, error.code));
      });
      child.on('close', (status, signal) => resolve(status ?? signal));
    });
    options.signal?.throwIfAborted();
    if (code === 0) return lines.join('\n');
    throw new CommandError(
      [`${command} ${args[0] ?? ''} ended with ${String(code)}:`, ...lines.slice(-MAX_ERROR_LINES)].join('\n  '),
    );
  } finally {
    options.signal?.removeEventListener('abort', end);
  }
}
