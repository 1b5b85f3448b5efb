import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from '../src/config.ts';
import { type DevFile, readDevFile } from '../src/main/embedded/dev-file.ts';
import { takeHome } from '../src/main/embedded/home.ts';
import { makeProgress } from '../src/main/embedded/progress.ts';
import { makeSupervisor } from '../src/main/embedded/supervisor.ts';
import { startServers } from './servers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Milliseconds. The first start on a machine may build Temporal. */
const STARTS_WITHIN = 900_000;

/**
 * Runs a measurement against the whole service as `npm start` runs it, but with Temporal's full server on Postgres, as
 * production has it: in a home of its own. Ends all of it.
 * @param env settings on top of the defaults; a developer's own do not count
 */
export async function withStack<T>(env: NodeJS.ProcessEnv, measure: (dev: DevFile) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-bench-'));
  // Postgres may run as an account of its own, which must come in.
  await chmod(folder, 0o755);
  const progress = makeProgress(process.stderr);
  const { home, release } = await takeHome(join(folder, 'servers'));
  const supervisor = makeSupervisor(progress, () => undefined);
  // The measurement then fails, and all of it ends.
  const ending = new AbortController();
  const end = () => ending.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  try {
    const servers = await startServers(home, supervisor, progress);
    return await withService(join(folder, 'home'), { ...servers, ...env }, ending.signal, measure);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
    await supervisor.stop();
    await release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function withService<T>(
  home: string,
  env: NodeJS.ProcessEnv,
  ending: AbortSignal,
  measure: (dev: DevFile) => Promise<T>,
): Promise<T> {
  const blank = Object.fromEntries([...Object.keys(SETTINGS), 'TEMPORAL_ADDRESS'].map((name) => [name, '']));
  const service = spawn(process.execPath, ['--import', 'tsx', 'src/main/start.ts'], {
    cwd: ROOT,
    env: { ...process.env, ...blank, PORT: '0', LOG_LEVEL: 'warn', SENDWRIGHT_HOME: home, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(service, 'exit');
  ending.addEventListener('abort', () => service.kill('SIGINT'));
  try {
    return await measure(await running(home, ended));
  } finally {
    service.kill('SIGINT');
    await ended;
  }
}

async function running(home: string, ended: Promise<unknown>): Promise<DevFile> {
  const over = new AbortController();
  void ended.then(() => {
    over.abort();
  });
  for (const until = performance.now() + STARTS_WITHIN; performance.now() < until && !over.signal.aborted;) {
    const dev = await readDevFile(join(home, 'dev.json'));
    if (dev) return dev;
    await sleep(100);
  }
  throw new Error('the service did not start');
}
