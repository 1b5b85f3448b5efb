import { fileURLToPath } from 'node:url';
import type { PartSpec } from './part.ts';

/** The folder of package.json, where tsx and `.env` are found. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * How to run one of our own processes from source. It says `{ready: true, …}` by IPC when it serves.
 * @param script path from the project's folder
 * @param logs folder for what Node itself may write about the process; makes its command line known as this home's
 */
export function nodePart<Facts>(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  logs: string,
  log: string,
  stopWithin: number,
): PartSpec<Facts> {
  const diagnostics = `--diagnostic-dir=${logs}`;
  return {
    command: process.execPath,
    args: [diagnostics, '--import', 'tsx', script, ...args],
    env,
    cwd: ROOT,
    mark: `${diagnostics} --import tsx ${script}`,
    log,
    ipc: true,
    stop: [['SIGTERM', stopWithin]],
    ready: async (message) => (await message) as Facts,
  };
}
