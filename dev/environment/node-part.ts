import type { PartSpec } from './part.ts';

/** Returns the program of one of our own processes: its path from the project's folder, without the extension. */
export function programOf(name: string): string {
  return name === 'simulator' ? 'dev/simulator/main' : `src/main/${name}`;
}

/**
 * Defines a part that is one of our own processes, which sends `{ready: true, …}` by IPC.
 * @param program path of the compiled program
 * @param logs folder of Node's diagnostic reports; identifies the home in the command line
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
    waitUntilReady: async (message) => (await message) as Facts,
  };
}
