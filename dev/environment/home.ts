import { mkdir, readFile, realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { writeJson } from './atomic-file.ts';
import { type PartName, PARTS, readDevFile } from '../../src/main/dev-file.ts';
import { tryLock } from './lock.ts';
import { runningPostmaster } from './postgres.ts';
import { Problem } from './problem.ts';
import { endRecorded } from './processes.ts';
import type { Processes } from './supervisor.ts';

/** The absolute paths of a home. */
export interface Home {
  readonly path: string;
  readonly logs: string;
  readonly postgres: string;
  readonly temporal: string;
  readonly inbox: string;
  readonly attachments: string;
  readonly secrets: string;
  readonly devFile: string;
  /** The settings of the running API and worker. */
  readonly settings: string;
  /** The running processes; the next start ends them if this one is killed. */
  readonly processes: string;
}

const ORPHAN_SIGNAL: Readonly<Record<PartName, NodeJS.Signals>> = {
  api: 'SIGTERM',
  worker: 'SIGTERM',
  simulator: 'SIGTERM',
  temporal: 'SIGTERM',
  postgres: 'SIGINT',
};
const ORPHAN_TIMEOUT_MS = 3_000;

/**
 * Locks a home for this process and creates it if needed.
 * @throws Problem if another process holds it, or this user cannot write to it
 */
export async function lockHome(folder: string): Promise<{ home: Home; release: () => Promise<void> }> {
  await mkdir(join(folder, 'logs'), { recursive: true }).catch((error: unknown) => refuseHome(resolve(folder), error));
  const path = await realpath(resolve(folder));
  const home: Home = {
    path,
    logs: join(path, 'logs'),
    postgres: join(path, 'postgres'),
    temporal: join(path, 'temporal'),
    inbox: join(path, 'inbox'),
    attachments: join(path, 'attachments'),
    secrets: join(path, 'secrets.json'),
    devFile: join(path, 'dev.json'),
    settings: join(path, 'settings.json'),
    processes: join(path, 'processes.json'),
  };
  const lock = await tryLock(join(path, 'lock')).catch((error: unknown) => refuseHome(path, error));
  if ('release' in lock) return { home, release: lock.release };
  const running = await readDevFile(home.devFile);
  const where = running ? ` and serves at ${running.base_url}` : '';
  throw new Problem(
    `Sendwright already runs in ${path} (process ${lock.pid} on ${lock.host})${where}. ` +
      'Stop it first, or set SENDWRIGHT_HOME to another folder to run a second one beside it.',
  );
}

function refuseHome(path: string, error: unknown): never {
  throw new Problem(
    `${path} cannot be used: ${(error as Error).message}. ` +
      'Make it a folder that this user can write to, or set SENDWRIGHT_HOME to another folder.',
    { cause: error },
  );
}

/** Records the running processes. Calls must not overlap. */
export async function recordProcesses(home: Home, processes: Processes): Promise<void> {
  await writeJson(home.processes, processes);
}

/** Ends the processes of an earlier start that was killed, and removes its files. @returns the parts that were still running */
export async function endOrphans(home: Home): Promise<PartName[]> {
  const recorded = await readProcesses(home);
  // Postgres's own pid file identifies the process if our file was never written.
  const postmaster = await runningPostmaster({ data: join(await resolvePath(home.postgres), 'data') });
  if (postmaster) recorded.postgres = postmaster;
  const ended: PartName[] = [];
  for (const name of PARTS) {
    const one = recorded[name];
    if (one && (await endRecorded(one, ORPHAN_SIGNAL[name], ORPHAN_TIMEOUT_MS))) ended.push(name);
  }
  await removeRunFiles(home);
  return ended;
}

/** Removes the files that exist while Sendwright runs. */
export async function removeRunFiles({ processes, devFile, settings }: Home): Promise<void> {
  await Promise.all([processes, devFile, settings].map((path) => rm(path, { force: true })));
}

async function resolvePath(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

async function readProcesses(home: Home): Promise<Processes> {
  try {
    return JSON.parse(await readFile(home.processes, 'utf8')) as Processes;
  } catch {
    return {};
  }
}
