import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createOnce, cacheFolder } from '../environment/cache.ts';
import { run } from '../environment/command.ts';
import { checkGo, goBuild } from '../environment/go-build.ts';
import type { Home } from '../environment/home.ts';
import type { PartSpec } from '../environment/part.ts';
import { makePorts } from '../environment/ports.ts';
import { adminUrl, createDatabase, postgresPart, prepareCluster } from '../environment/postgres.ts';
import { waitUntilServing } from '../environment/probe.ts';
import type { Progress } from '../environment/progress.ts';
import type { Supervisor } from '../environment/supervisor.ts';
import { findTemporalCli } from '../environment/temporal-cli.ts';
import { DYNAMIC_CONFIG } from '../environment/temporal.ts';
import { makePool } from '../../src/store/postgres/pool.ts';

/** The version that the Go module of the development server also pins. */
export const TEMPORAL_SERVER = '1.31.2';
const PASSWORD = 'bench';
/** The discard port: nothing listens there. */
const NO_TEMPORAL = '127.0.0.1:9';
const POSTGRES = {
  // As in docker-compose.yml.
  max_connections: '500',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  wal_compression: 'on',
  // Measures the cost of statements.
  shared_preload_libraries: 'pg_stat_statements',
};
const STATES = ['temporal', 'visibility'] as const;
/** Settings for a server on one machine; all others are the server's defaults. */
const SIZES = { NUM_HISTORY_SHARDS: '8', SQL_MAX_CONNS: '20', SQL_VIS_MAX_CONNS: '5' };
/** Temporal stores ports as signed 16-bit integers. */
const LOWEST_PORT = 12_000;
const LISTENERS = [
  'FRONTEND_GRPC_PORT',
  'FRONTEND_MEMBERSHIP_PORT',
  'FRONTEND_HTTP_PORT',
  'MATCHING_GRPC_PORT',
  'MATCHING_MEMBERSHIP_PORT',
  'HISTORY_GRPC_PORT',
  'HISTORY_MEMBERSHIP_PORT',
  'WORKER_GRPC_PORT',
  'WORKER_MEMBERSHIP_PORT',
] as const;

/** The settings that contain the addresses of the servers. */
export interface Servers {
  readonly DATABASE_URL: string;
  readonly TEMPORAL_ADDRESS: string;
  /** The URL of Postgres's own database, as its superuser. */
  readonly adminUrl: string;
}

/**
 * Starts the servers of production that `npm start` does not have: Temporal's full server on Postgres, in the cluster that
 * also contains the application's database.
 * @param withTemporal false returns an address without a listener
 * @param settings further settings of Postgres
 */
export async function startServers(
  home: Home,
  supervisor: Supervisor,
  progress: Progress,
  withTemporal: boolean,
  settings: Readonly<Record<string, string>> = {},
): Promise<Servers> {
  const ports = makePorts();
  const cluster = await prepareCluster(home.postgres, PASSWORD, progress);
  const port = await ports.choose(0);
  const log = join(home.logs, 'postgres.log');
  await supervisor.start('postgres', postgresPart(cluster, port, log, { ...POSTGRES, ...settings }));
  const admin = adminUrl(cluster, port);
  const DATABASE_URL = await createDatabase(admin, PASSWORD);
  const TEMPORAL_ADDRESS = withTemporal ? await startTemporal(home, supervisor, progress, admin, port) : NO_TEMPORAL;
  await ports.release();
  return { DATABASE_URL, TEMPORAL_ADDRESS, adminUrl: admin };
}

async function startTemporal(
  home: Home,
  supervisor: Supervisor,
  progress: Progress,
  admin: string,
  port: number,
): Promise<string> {
  const programs = await Promise.all([
    findTemporalCli(process.env, progress),
    buildServer('temporal-server', 'go.temporal.io/server/cmd/server', progress),
    buildServer('temporal-sql-tool', 'go.temporal.io/server/cmd/tools/sql', progress),
  ]);
  const [cli, server, sqlTool] = programs;
  const ports = makePorts();
  await makeStates(admin, port, sqlTool);
  const listeners: number[] = [];
  for (let i = 0; i < LISTENERS.length; i++) listeners.push(await ports.choose((listeners.at(-1) ?? LOWEST_PORT) + 1));
  const [frontend = 0] = listeners;
  const listening = Object.fromEntries(LISTENERS.map((name, i) => [name, String(listeners[i])]));
  await supervisor.start('temporal', await serverPart(home, server, port, frontend, listening));
  const address = `127.0.0.1:${frontend}`;
  const name = ['-n', 'default', '--retention', '72h', '--address', address];
  await run(cli, ['operator', 'namespace', 'create', ...name], { env: process.env });
  await ports.release();
  return address;
}

/** Builds a program of Temporal's server with Go once, and caches it beside the development server. */
export async function buildServer(name: string, program: string, progress: Progress): Promise<string> {
  const path = join(cacheFolder(process.env), `${name}-${TEMPORAL_SERVER}-${process.platform}-${process.arch}`);
  await createOnce(
    path,
    async (workspace) => {
      await checkGo(undefined);
      const destination = join(workspace, name);
      await progress.step(`${name} ${TEMPORAL_SERVER}, built from source`, (step) =>
        goBuild(program, '', destination, step, undefined),
      );
      return destination;
    },
    { onWait: () => progress.print(`  ${name}: another process is building it; waiting for that`) },
  );
  return path;
}

/** Creates Temporal's two databases. */
async function makeStates(admin: string, port: number, sqlTool: string): Promise<void> {
  const pool = makePool(admin, 'bench', 1, () => undefined);
  for (const state of STATES) {
    // A restored cluster contains outdated databases.
    await pool.query(`DROP DATABASE IF EXISTS ${databaseOf(state)}`);
    await pool.query(`CREATE DATABASE ${databaseOf(state)}`);
  }
  await pool.end();
  const account = [
    '--ep',
    '127.0.0.1',
    '-p',
    String(port),
    '-u',
    'postgres',
    '--pw',
    PASSWORD,
    '--pl',
    'postgres12_pgx',
  ];
  for (const state of STATES) {
    const tool = (...args: string[]) => run(sqlTool, [...account, '--db', databaseOf(state), ...args], { env: {} });
    await tool('setup-schema', '-v', '0.0');
    await tool('update-schema', '--schema-name', `postgresql/v12/${state}`);
  }
}

function databaseOf(state: (typeof STATES)[number]): string {
  return state === 'temporal' ? 'temporal' : 'temporal_visibility';
}

async function serverPart(
  home: Home,
  server: string,
  databasePort: number,
  frontend: number,
  listening: Record<string, string>,
): Promise<PartSpec<void>> {
  const config = join(home.path, 'dynamic-config.yaml');
  const values = Object.entries(DYNAMIC_CONFIG).map(([key, value]) => `${key}:\n  - value: ${JSON.stringify(value)}\n`);
  await writeFile(config, values.join(''));
  return {
    command: server,
    args: ['--allow-no-auth', 'start'],
    env: {
      ...SIZES,
      ...listening,
      DB: 'postgres12_pgx',
      POSTGRES_SEEDS: '127.0.0.1',
      DB_PORT: String(databasePort),
      POSTGRES_USER: 'postgres',
      POSTGRES_PWD: PASSWORD,
      DBNAME: databaseOf('temporal'),
      VISIBILITY_DBNAME: databaseOf('visibility'),
      BIND_ON_IP: '127.0.0.1',
      TEMPORAL_BROADCAST_ADDRESS: '127.0.0.1',
      DYNAMIC_CONFIG_FILE_PATH: config,
      LOG_LEVEL: 'error',
    },
    mark: server,
    log: join(home.logs, 'temporal.log'),
    ipc: false,
    waitUntilReady: (_message, signal) => waitUntilServing(frontend, signal),
    stop: [['SIGTERM', 3_000]],
  };
}
