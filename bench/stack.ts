import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { demoOrganization } from '../dev/environment/demo.ts';
import { devFileOf } from '../dev/environment/dev-file.ts';
import type { DevFile, PartName } from '../src/main/dev-file.ts';
import { type Home, lockHome } from '../dev/environment/home.ts';
import { makePorts } from '../dev/environment/ports.ts';
import { makeProgress, type Progress } from '../dev/environment/progress.ts';
import { readSecrets } from '../dev/environment/secrets.ts';
import { makeSupervisor, type Processes, type Supervisor } from '../dev/environment/supervisor.ts';
import { migrate } from '../src/store/postgres/migrate.ts';
import { makePool, type Pool } from '../src/store/postgres/pool.ts';
import { BENCH_PROFILE, processPart } from '../dev/production/processes.ts';
import { type Servers, startServers } from '../dev/production/servers.ts';
import { sharedSettings } from '../dev/production/settings.ts';
import { printStatements } from './statements.ts';

/** The measured service, as far as it differs from the default. */
export interface StackOptions {
  /** Settings in addition to the defaults; the developer's own are ignored. */
  readonly env?: NodeJS.ProcessEnv;
  /** Settings of Postgres in addition to those of `docker-compose.yml`. */
  readonly postgres?: Readonly<Record<string, string>>;
  /** Parts that are not started; work that depends on them stays pending. */
  readonly without?: readonly ('temporal' | 'worker')[];
  /** True if the provider reports about emails, which doubles the work; true by default. */
  readonly reports?: boolean;
  /** The number of APIs, each with its relay, and of workers; the provider reports to the first. */
  readonly copies?: number;
  /** The fleets of each worker process; by default one process has all. */
  readonly fleets?: readonly string[];
}

/** One of the APIs, and a worker; or a worker of other fleets. */
export type Copy = Pick<DevFile, 'base_url' | 'processes'>;

/**
 * Runs a measurement against the service as in production: from `dist/`, with Temporal's full server on Postgres and
 * simulated providers, each in a separate process, in a temporary folder. Ends all of them.
 * @param measure receives the application's database, and all copies, of which the stack itself is the first
 */
export async function withStack<T>(
  { env = {}, postgres = {}, without = [], reports = true, copies = 1, fleets = ['all'] }: StackOptions,
  measure: (stack: DevFile, pool: Pool, copies: readonly Copy[]) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-bench-'));
  // Postgres may run as another account, which needs access.
  await chmod(folder, 0o755);
  const progress = makeProgress(process.stderr);
  const { home, release } = await lockHome(folder);
  const { supervisor, pids } = supervise(progress);
  const supervisors = [supervisor];
  // Makes the measurement fail, which ends all parts.
  const end = () => void stopAll(supervisors);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  try {
    const servers = await startServers(home, supervisor, progress, !without.includes('temporal'), postgres);
    const parts = (['api', 'worker', 'simulator'] as const).filter(
      (name) => name !== 'worker' || !without.includes(name),
    );
    const { stack, env: settings } = await startService(home, supervisor, servers, { env, reports, fleets }, parts);
    const processes = pids();
    const others: Copy[] = [];
    const startMore = async (start: (supervisor: Supervisor) => Promise<string>) => {
      const more = supervise(progress);
      supervisors.push(more.supervisor);
      const base_url = await start(more.supervisor);
      others.push({ base_url, processes: more.pids() });
    };
    while (others.length < copies - 1) await startMore((own) => startCopy(home, own, settings));
    for (const fleet of fleets.slice(1)) {
      await startMore(async (own) => {
        await own.start('worker', processPart('worker', settings, home.logs, ['--fleets', fleet]));
        return stack.base_url;
      });
    }
    const pool = makePool(servers.DATABASE_URL, 'bench', 4, () => undefined);
    const all = [{ base_url: stack.base_url, processes }, ...others];
    const result = await measure({ ...stack, processes }, pool, all).finally(() => pool.end());
    if (BENCH_PROFILE) await printStatements(servers.adminUrl);
    return result;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
    await stopAll(supervisors);
    await release();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Stops copies before the servers that they use. */
async function stopAll(supervisors: readonly Supervisor[]): Promise<void> {
  for (const supervisor of supervisors.toReversed()) await supervisor.stop();
}

function supervise(progress: Progress): { supervisor: Supervisor; pids: () => DevFile['processes'] } {
  let running: Processes = {};
  const supervisor = makeSupervisor(progress, (current) => {
    running = current;
  });
  return { supervisor, pids: () => Object.fromEntries(Object.entries(running).map(([name, { pid }]) => [name, pid])) };
}

/** Starts another API and worker with the settings of the first. @returns the URL of the API */
async function startCopy(home: Home, supervisor: Supervisor, env: NodeJS.ProcessEnv): Promise<string> {
  const ports = makePorts();
  const port = String(await ports.choose(0));
  const copy = { ...env, PORT: port };
  await Promise.all(
    (['api', 'worker'] as const).map((name) => supervisor.start(name, processPart(name, copy, home.logs))),
  );
  await ports.release();
  return `http://127.0.0.1:${port}`;
}

async function startService(
  home: Home,
  supervisor: Supervisor,
  { DATABASE_URL, TEMPORAL_ADDRESS }: Servers,
  { env: given, reports, fleets }: Required<Pick<StackOptions, 'env' | 'reports' | 'fleets'>>,
  parts: readonly PartName[],
): Promise<{ stack: DevFile; env: NodeJS.ProcessEnv }> {
  await migrate(DATABASE_URL);
  const secrets = await readSecrets(home.secrets);
  const demo = await demoOrganization(DATABASE_URL, home.secrets, secrets);
  const ports = makePorts();
  const [api, simulator, smtp] = [await ports.choose(0), await ports.choose(0), await ports.choose(0)];
  const url = `http://127.0.0.1:${api}`;
  const env = {
    ...sharedSettings(home, secrets, { url, smtpPort: smtp }),
    DATABASE_URL,
    TEMPORAL_ADDRESS,
    PORT: String(api),
    HOST: '127.0.0.1',
    POSTMARK_BASE_URL: `http://127.0.0.1:${simulator}`,
    ...given,
  };
  const own: Partial<Record<PartName, NodeJS.ProcessEnv>> = {
    simulator: {
      SIMULATOR_PORT: String(simulator),
      SIMULATOR_SMTP_PORT: String(smtp),
      SIMULATOR_FOLDER: home.inbox,
      ...(reports && { SIMULATOR_CALLBACK_URL: `${url}/callbacks/postmark` }),
    },
  };
  const args = (name: PartName) => (name === 'worker' ? ['--fleets', fleets[0] ?? 'all'] : []);
  await Promise.all(
    parts.map((name) => supervisor.start(name, processPart(name, { ...env, ...own[name] }, home.logs, args(name)))),
  );
  await ports.release();
  const temporal = { address: TEMPORAL_ADDRESS, namespace: 'default', uiUrl: null };
  const inboxUrl = `http://127.0.0.1:${simulator}/inbox`;
  const contents = devFileOf({ baseUrl: url, databaseUrl: DATABASE_URL, temporal, inboxUrl, demo }, {});
  const stack = { ...contents, from: `Bench <bench@${demo.domain}>` };
  return { stack, env };
}
