import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exists } from './cache.ts';
import { run } from './command.ts';
import type { PartSpec } from './part.ts';
import { waitUntilServing } from './probe.ts';
import { Problem } from './problem.ts';

/**
 * Raises limits that would restrict throughput before the CPU does, and enables eager activities and fairness between
 * organizations.
 */
export const DYNAMIC_CONFIG: Record<string, number | boolean> = {
  'frontend.rps': 20_000,
  'frontend.namespaceRPS': 20_000,
  'frontend.namespaceRPS.visibility': 1_000,
  'frontend.persistenceMaxQPS': 20_000,
  'matching.persistenceMaxQPS': 20_000,
  'history.persistenceMaxQPS': 50_000,
  'history.rps': 50_000,
  'matching.rps': 50_000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'history.shardIOConcurrency': 8,
  'system.enableActivityEagerExecution': true,
  'matching.enableFairness': true,
};
/**
 * WAL, flushed at checkpoints: writes survive a killed process. The default, a flush for each transaction, is several times
 * slower.
 */
const SQLITE_PRAGMAS = ['journal_mode=wal', 'synchronous=1'].flatMap((pragma) => ['--sqlite-pragma', pragma]);
const STOP_SIGNALS: PartSpec<unknown>['stop'] = [['SIGTERM', 2_000]];

interface DevServer {
  /** Path of the Temporal CLI. Without a `database` it identifies the process. */
  readonly cli: string;
  readonly port: number;
  /** Port of the web UI; no UI without it. */
  readonly uiPort?: number;
  /** The file of its state; without it, the state is in memory. */
  readonly database?: string;
  readonly namespaces: readonly string[];
}

/** Temporal's development server: all of Temporal in one process, on loopback. */
export function temporalPart(server: DevServer, log: string): PartSpec<void> {
  const { cli, port, uiPort, database, namespaces } = server;
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'error'];
  args.push(...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort), '--ui-disable-news-fetch']));
  if (database !== undefined) args.push('--db-filename', database, ...SQLITE_PRAGMAS);
  for (const name of namespaces) args.push('--namespace', name);
  for (const [key, value] of Object.entries(DYNAMIC_CONFIG)) {
    args.push('--dynamic-config-value', `${key}=${JSON.stringify(value)}`);
  }
  return {
    command: cli,
    args,
    env: withoutTemporal(process.env),
    mark: database ?? cli,
    log,
    ipc: false,
    stop: STOP_SIGNALS,
    waitUntilReady: (_message, signal) => waitUntilServing(port, signal),
  };
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Connects once to the server that the settings name.
 * @throws Problem if it does not answer within 5 s
 */
export async function checkTemporal(environment: NodeJS.ProcessEnv): Promise<void> {
  try {
    // Loaded here, since a start with its own server does not need them.
    const [{ loadClientConnectConfig }, { NativeConnection }] = await Promise.all([
      import('@temporalio/envconfig'),
      import('@temporalio/worker'),
    ]);
    const { connectionOptions } = loadClientConnectConfig({ overrideEnvVars: environment as Record<string, string> });
    const connection = await Promise.race([
      NativeConnection.connect(connectionOptions),
      sleep(CONNECT_TIMEOUT_MS, undefined, { ref: false }),
    ]);
    if (connection === undefined) throw new Error(`it does not answer within ${CONNECT_TIMEOUT_MS / 1_000} s`);
    await connection.close();
  } catch (error) {
    const address = environment['TEMPORAL_ADDRESS'];
    const reason = error instanceof Error ? error.message : String(error);
    throw new Problem(`The Temporal server that TEMPORAL_ADDRESS names (${address}) cannot be used: ${reason}`, {
      cause: error,
    });
  }
}

/**
 * Returns the file of the server's state in `folder`. The server expects an existing file to be complete, so the file of a
 * first start that never became ready is removed.
 */
export async function temporalDatabase(folder: string) {
  const mark = join(folder, 'complete');
  const isComplete = await exists(mark);
  if (!isComplete) await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return {
    path: join(folder, 'temporal.db'),
    /** Call it once the server is ready: runs `finish` the first time and marks the database complete. */
    async complete(finish: () => Promise<void>): Promise<void> {
      if (isComplete) return;
      await finish();
      await writeFile(mark, '');
    },
  };
}

/** The default retention of a development server is a day. */
export async function setRetention(cli: string, address: string, namespace: string, retention: string): Promise<void> {
  const args = ['operator', 'namespace', 'update', '-n', namespace, '--retention', retention];
  await run(cli, [...args, '--address', address], { env: withoutTemporal(process.env) });
}

/** Removes the user's Temporal settings, which belong to another server. */
export function withoutTemporal(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}
