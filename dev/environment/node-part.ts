import type { PartSpec } from './part.ts';

/** The program of one of our own processes: its path from the project's folder, without the extension. */
export function programOf(name: string): string {
  return name === 'simulator' ? 'dev/simulator/main' : `src/main/${name}`;
}

/**
 * How to run one of our own processes. It sends `{ready: true, …}` by IPC when it serves.
 * @param program path of the compiled program
 * @param logs folder for what Node itself may write about the process; makes its command line known as this home's
 */
export function nodePart<Facts>(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  logs: string,
  log: string,
  stopWithin: number,
): PartSpec<Facts> {
  const diagnostics = `--diagnostic-dir=${logs}`;
  return {
    command: process.execPath,
    args: ['--enable-source-maps', diagnostics, program, ...args],
    env,
    mark: `${diagnostics} ${program}`,
    log,
    ipc: true,
    stop: [['SIGTERM', stopWithin]],
    ready: async (message) => (await message) as Facts,
  };
}
