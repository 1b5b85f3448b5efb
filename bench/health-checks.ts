import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROGRAM = fileURLToPath(new URL('../dist/src/main/health-check.js', import.meta.url));
/** The interval of `docker-compose.yml` once a container is healthy. */
const INTERVAL_MS = 15_000;

/**
 * Checks the health of a process as its container does, until `signal` aborts, since each check takes processor time. The
 * result is ignored: the supervisor restarts processes that end.
 */
export async function checkHealth(name: 'api' | 'worker', env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  const args = name === 'worker' ? [PROGRAM, '--worker'] : [PROGRAM];
  while (!signal.aborted) {
    await promisify(execFile)(process.execPath, args, { env, signal }).catch(() => undefined);
    await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}
