import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PartName } from '../../src/main/dev-file.ts';
import { programOf } from '../environment/node-part.ts';
import type { PartSpec } from '../environment/part.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The folder to which api, worker and simulator write CPU profiles, in the format of Chrome's tools. */
export const { BENCH_PROFILE } = process.env;

/** Returns how to run one of our own processes: from `dist/`, except for the simulator, which is not part of production. */
export function processPart(
  name: PartName,
  env: NodeJS.ProcessEnv,
  logs: string,
  args: readonly string[] = [],
): PartSpec<unknown> {
  const script =
    name === 'simulator'
      ? ['--import', import.meta.resolve('tsx'), join(ROOT, `${programOf(name)}.ts`)]
      : [join(ROOT, `dist/${programOf(name)}.js`)];
  const profile = BENCH_PROFILE ? ['--cpu-prof', `--cpu-prof-dir=${resolve(BENCH_PROFILE, name)}`] : [];
  const diagnostics = `--diagnostic-dir=${logs}`;
  return {
    command: process.execPath,
    args: [diagnostics, ...profile, ...script, ...args],
    env,
    // The project's folder may have a `.env` with the developer's own settings.
    cwd: logs,
    mark: diagnostics,
    log: join(logs, `${name}.log`),
    ipc: true,
    stop: [['SIGTERM', 10_000]],
    waitUntilReady: (message) => message,
  };
}
