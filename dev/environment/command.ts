import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { killGroup } from './processes.ts';

/** As whom a process runs, when not as ourselves. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly account?: Account | undefined;
  /** Ends the command and everything it started. */
  readonly signal?: AbortSignal | undefined;
  /** Told of each line that the command prints, on either stream. */
  readonly onLine?: (line: string) => void;
}

/** A command that failed; the message holds its last lines. */
export class CommandError extends Error {
  /** The system's error code when it could not be started at all, such as ENOENT. */
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

const KEPT_LINES = 20;

/**
 * Runs a command to its end in a process group of its own, so that no terminal's Ctrl-C reaches it before we do.
 * @returns what it printed on both streams
 * @throws CommandError when it cannot be started or does not exit with 0, AbortError when it was ended by `signal`
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
      [`${command} ${args[0] ?? ''} ended with ${String(code)}:`, ...lines.slice(-KEPT_LINES)].join('\n  '),
    );
  } finally {
    options.signal?.removeEventListener('abort', end);
  }
}
