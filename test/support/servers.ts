import { chmod, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { endOrphans, type Home, recordProcesses, lockHome } from '../../dev/environment/home.ts';
import { makeLatestWrite } from '../../dev/environment/latest-write.ts';
import { makePorts } from '../../dev/environment/ports.ts';
import { adminUrl, postgresPart, prepareCluster } from '../../dev/environment/postgres.ts';
import { Problem } from '../../dev/environment/problem.ts';
import type { Progress } from '../../dev/environment/progress.ts';
import { makeSupervisor, onFreePorts, type Processes } from '../../dev/environment/supervisor.ts';
import { findTemporalCli } from '../../dev/environment/temporal-cli.ts';
import { temporalPart } from '../../dev/environment/temporal.ts';
import { findTimeSkippingServer } from '../../dev/environment/time-skipping.ts';
import { compileInto } from './compiled.ts';
import { dropRun } from './database.ts';

/** The servers that a test run needs, and how to end them. */
export interface Servers {
  /** The variables of provided.ts. */
  readonly environment: NodeJS.ProcessEnv;
  readonly stop: () => Promise<void>;
}

const PREFIX = 'sendwright-test-';
const HOMES = 'homes';
const COMPILED = 'compiled';
/** The data of a test run need not be durable. */
const NOT_DURABLE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

/**
 * Starts Postgres and Temporal's development server in a folder of their own, each unless a setting (`DATABASE_URL`,
 * `TEMPORAL_ADDRESS`) names one that runs, and finds the time-skipping server. The Temporal CLI is needed in any case, since some
 * tests run it.
 * @throws Problem that names what to install
 */
export async function startServers(env: NodeJS.ProcessEnv, progress: Progress, signal: AbortSignal): Promise<Servers> {
  await removeLeftOvers();
  const folder = await mkdtemp(join(tmpdir(), PREFIX));
  // Postgres may run as another user.
  await chmod(folder, 0o755);
  const run = basename(folder).slice(PREFIX.length).toLowerCase();
  const { home, release } = await lockHome(folder);
  const ports = makePorts();
  const record = makeLatestWrite((processes: Processes) => recordProcesses(home, processes));
  const supervisor = makeSupervisor(progress, record.write);
  signal.addEventListener('abort', () => void supervisor.stop());

  const stop = async () => {
    if (env['DATABASE_URL']) await dropRun(env['DATABASE_URL'], run).catch(() => undefined);
    await supervisor.stop();
    await Promise.allSettled([record.settled(), ports.release()]);
    await removeHome(home, release);
  };

  const startPostgres = async () => {
    const cluster = await prepareCluster(home.postgres, 'test', progress);
    return onFreePorts(async () => {
      const port = await ports.choose(0);
      await supervisor.start('postgres', postgresPart(cluster, port, join(home.logs, 'postgres.log'), NOT_DURABLE));
      return adminUrl(cluster, port);
    });
  };
  const startTemporal = async (installed: string) => {
    // A later run identifies its processes by this name.
    const cli = join(folder, 'temporal');
    await symlink(installed, cli);
    return onFreePorts(async () => {
      const port = await ports.choose(0);
      await supervisor.start(
        'temporal',
        temporalPart({ cli, port, namespaces: ['default'] }, join(home.logs, 'temporal.log')),
      );
      return `127.0.0.1:${port}`;
    });
  };

  try {
    const [database, cli, timeSkipping] = await Promise.all([
      env['DATABASE_URL'] || progress.step('Postgres', startPostgres),
      findTemporalCli(env, progress, signal),
      findTimeSkippingServer(env, progress, signal),
      compileInto(join(folder, COMPILED)),
    ]);
    const temporal = env['TEMPORAL_ADDRESS'] || (await progress.step('Temporal server', () => startTemporal(cli)));
    const environment = {
      TEST_DATABASE_URL: database,
      TEST_TEMPORAL_ADDRESS: temporal,
      TEST_RUN: run,
      TEST_HOMES: join(folder, HOMES),
      TEST_WORKFLOW_BUNDLE: join(folder, 'workflows.js'),
      TEST_COMPILED: join(folder, COMPILED),
      // Newer versions of Node cache compiled code there.
      NODE_COMPILE_CACHE: join(folder, 'code'),
      TEMPORAL_CLI_PATH: cli,
      TEMPORAL_TEST_SERVER_PATH: timeSkipping,
    };
    return { environment, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends processes and removes folders of killed runs. */
async function removeLeftOvers(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    try {
      const { home, release } = await lockHome(join(tmpdir(), name));
      await removeHome(home, release);
    } catch (error) {
      // A running one, or one of another user.
      if (!(error instanceof Problem) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    }
  }
}

/** Also ends processes of tests of `npm start`, in homes inside this one. */
async function removeHome(home: Home, release: () => Promise<void>): Promise<void> {
  const inner = await readdir(join(home.path, HOMES)).catch(() => []);
  for (const name of inner) await endOrphans(await lockHome(join(home.path, HOMES, name)).then((taken) => taken.home));
  await endOrphans(home);
  await release();
  await rm(home.path, { recursive: true, force: true });
}
