import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makePool, isUnreachable, type Pool } from '../../src/store/postgres/pool.ts';
import { exists } from './cache.ts';
import { run, type Account } from './command.ts';
import type { PartSpec } from './part.ts';
import { dataFolder, postgresAccount } from './postgres-account.ts';
import { postgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { until } from './probe.ts';
import { Problem } from './problem.ts';
import type { Progress } from './progress.ts';
import { stillRuns, type RecordedProcess } from './processes.ts';

export interface Cluster {
  readonly binaries: PostgresBinaries;
  readonly account: Account | undefined;
  /** Postgres's own data directory. */
  readonly data: string;
  readonly password: string;
}

const SUPERUSER = 'postgres';
/** The role that owns the application's database, and the database itself. */
export const APPLICATION = 'sendwright';
/** A builtin locale, so sorting does not depend on the machine. */
const INITDB_OPTIONS = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
/** Does not depend on the shell: on macOS Postgres does not start without a locale. */
const LOCALE = { LC_ALL: 'C', TZ: 'UTC' };
/** SIGINT lets Postgres write to disk first; SIGQUIT also ends its child processes. */
const STOP_SIGNALS: PartSpec<unknown>['stop'] = [
  ['SIGINT', 1_500],
  ['SIGQUIT', 500],
];

/**
 * Returns the cluster under `folder`, which it creates if needed.
 * @param folder absolute path; may become a link to a folder that the account of Postgres can enter
 * @param password of the superuser and the application's role; fixed at creation
 */
export async function prepareCluster(folder: string, password: string, progress: Progress): Promise<Cluster> {
  const account = await postgresAccount(progress);
  const binaries = await postgresBinaries(account, progress);
  const clusterFolder = await dataFolder(folder, account, progress);
  const data = join(clusterFolder, 'data');
  const cluster = { binaries, account, data, password };
  if (await exists(join(data, 'PG_VERSION'))) await checkVersion(cluster);
  else await initialise(clusterFolder, cluster);
  return cluster;
}

async function checkVersion({ binaries, data }: Cluster): Promise<void> {
  const dataVersion = (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim();
  const [major] = binaries.version.split('.');
  if (dataVersion === major) return;
  throw new Problem(
    `The database in ${data} was made by Postgres ${dataVersion} and this is Postgres ${major ?? ''}, which cannot read it: ` +
      'move the folder away to begin with an empty one',
  );
}

/** Creates a cluster, and renames it only when it is complete, so that an interrupted run leaves no incomplete one. */
async function initialise(clusterFolder: string, { binaries, account, data, password }: Cluster): Promise<void> {
  const unfinished = join(clusterFolder, 'unfinished');
  const passwordFile = join(clusterFolder, 'password');
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account) await Promise.all([unfinished, passwordFile].map((path) => chown(path, account.uid, account.gid)));
  try {
    const args = [
      '-D',
      unfinished,
      '-U',
      SUPERUSER,
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      ...INITDB_OPTIONS,
    ];
    await run(binaries.initdb, args, { account, cwd: clusterFolder, env: LOCALE });
    await rename(unfinished, data);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** Returns the process in the cluster's pid file if it is still running. */
export async function runningPostmaster({ data }: Pick<Cluster, 'data'>): Promise<RecordedProcess | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  const recorded = { pid, mark: data };
  return pid > 0 && (await stillRuns(recorded)) ? recorded : undefined;
}

/**
 * Removes a pid file whose process has ended. Pids are reused, and Postgres refuses to start if another of our processes has
 * the pid in the file.
 */
export async function removeStalePidFile(cluster: Cluster): Promise<void> {
  if ((await runningPostmaster(cluster)) === undefined) await rm(join(cluster.data, 'postmaster.pid'), { force: true });
}

/**
 * Defines the Postgres part. It listens only on loopback, without a Unix socket, whose path may be too long. Commits survive
 * a crash: fsync and synchronous_commit stay on unless `settings` changes them.
 */
export function postgresPart(
  cluster: Cluster,
  port: number,
  log: string,
  settings: Record<string, string> = {},
): PartSpec<void> {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...settings,
  };
  return {
    command: cluster.binaries.postgres,
    args: ['-D', cluster.data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    env: LOCALE,
    cwd: '/',
    account: cluster.account,
    mark: cluster.data,
    log,
    ipc: false,
    stop: STOP_SIGNALS,
    waitUntilReady: (_message, signal) => ready(cluster, port, signal),
  };
}

async function ready(cluster: Cluster, port: number, signal: AbortSignal): Promise<void> {
  const pool = adminPool(adminUrl(cluster, port));
  try {
    const isFinal = (error: unknown) => !isUnreachable(error) || isWrongPassword(error);
    await until(() => pool.query('SELECT'), signal, isFinal);
  } catch (error) {
    throw isWrongPassword(error)
      ? new Problem(`The password of the database in ${cluster.data} is lost: move that folder away to begin anew`)
      : error;
  } finally {
    await pool.end();
  }
}

function isWrongPassword(error: unknown): boolean {
  return (error as { code?: unknown }).code === '28P01';
}

export function adminUrl({ password }: Cluster, port: number): string {
  return `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`;
}

function adminPool(url: string): Pool {
  return makePool(url, 'start', 1, () => undefined);
}

/** Creates the application's role and database if they do not exist. @returns the role's URL */
export async function createDatabase(admin: string, password: string): Promise<string> {
  const pool = adminPool(admin);
  try {
    const { rowCount: roles } = await pool.query('SELECT FROM pg_roles WHERE rolname = $1', [APPLICATION]);
    if (roles === 0) {
      const { rows } = await pool.query<{ sql: string }>(
        `SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text) AS sql`,
        [APPLICATION, password],
      );
      for (const { sql } of rows) await pool.query(sql);
    }
    const { rowCount: databases } = await pool.query('SELECT FROM pg_database WHERE datname = $1', [APPLICATION]);
    if (databases === 0) await pool.query(`CREATE DATABASE ${APPLICATION} OWNER ${APPLICATION}`);
  } finally {
    await pool.end();
  }
  const { host } = new URL(admin);
  return `postgres://${APPLICATION}:${password}@${host}/${APPLICATION}`;
}
