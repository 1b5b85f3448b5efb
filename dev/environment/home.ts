import { mkdir, readFile, realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { writeAtomically } from './atomic-file.ts';
import { readDevFile } from '../../src/main/dev-file.ts';
import { tryLock } from './lock.ts';
import { runningPostmaster } from './postgres.ts';
import { Problem } from './problem.ts';
import { endRecorded } from './processes.ts';
import { PARTS, type PartName, type Processes } from './supervisor.ts';

/** Where everything is that `npm start` embeds; all paths are absolute. */
export interface Home {
  readonly path: string;
  readonly logs: string;
  readonly postgres: string;
  readonly temporal: string;
  readonly inbox: string;
  readonly attachments: string;
  readonly secrets: string;
  readonly devFile: string;
  /** Notes which processes run, for the next start to end them if this one is killed. */
  readonly processes: string;
}

/** How to end what an earlier start left, and how many milliseconds that may take. */
const ORPHAN_SIGNAL: Readonly<Record<PartName, NodeJS.Signals>> = {
  api: 'SIGTERM',
  worker: 'SIGTERM',
  simulator: 'SIGTERM',
  temporal: 'SIGTERM',
  postgres: 'SIGINT',
};
const ORPHAN_WITHIN = 3_000;

/**
 * Takes a home for this process alone, making it if needed. @returns it, with a function that gives it back
 * @throws Problem when another process has it
 */
export async function takeHome(folder: string): Promise<{ home: Home; release: () => Promise<void> }> {
  await mkdir(join(folder, 'logs'), { recursive: true });
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
    processes: join(path, 'processes.json'),
  };
  const lock = await tryLock(join(path, 'lock'));
  if ('release' in lock) return { home, release: lock.release };
  const running = await readDevFile(home.devFile);
  const where = running ? ` and serves at ${running.base_url}` : '';
  throw new Problem(
    `Sendwright already runs in ${path} (process ${lock.pid} on ${lock.host})${where}. ` +
      'Stop it first, or set SENDWRIGHT_HOME to another folder to run a second one beside it.',
  );
}

/** Notes the running processes. Calls must not overlap. */
export async function recordProcesses(home: Home, processes: Processes): Promise<void> {
  await writeAtomically(home.processes, JSON.stringify(processes, null, 2));
}

/**
 * Ends what an earlier start left behind when it was killed itself, and removes what it said of itself.
 * @returns the names of the parts that still ran
 */
export async function endOrphans(home: Home): Promise<PartName[]> {
  const recorded = await readProcesses(home);
  // Its own pid file knows it too, if our note was never written.
  const postmaster = await runningPostmaster({ data: join(await resolved(home.postgres), 'data') });
  if (postmaster) recorded.postgres = postmaster;
  const ended: PartName[] = [];
  for (const name of PARTS) {
    const one = recorded[name];
    if (one && (await endRecorded(one, ORPHAN_SIGNAL[name], ORPHAN_WITHIN))) ended.push(name);
  }
  await Promise.all([rm(home.processes, { force: true }), rm(home.devFile, { force: true })]);
  return ended;
}

async function resolved(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

async function readProcesses(home: Home): Promise<Processes> {
  try {
    return JSON.parse(await readFile(home.processes, 'utf8')) as Processes;
  } catch {
    return {};
  }
}
