import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { demoOrganization } from '../dev/environment/demo.ts';
import { devFileOf } from '../dev/environment/dev-file.ts';
import type { DevFile, PartName } from '../src/main/dev-file.ts';
import { type Home, lockHome } from '../dev/environment/home.ts';
import { makePorts } from '../dev/environment/ports.ts';
import { makeProgress, type Progress } from '../dev/environment/progress.ts';
import { readSecrets } from '../dev/environment/secrets.ts';
import { makeSupervisor, type Processes as Running, type Supervisor } from '../dev/environment/supervisor.ts';
import { migrate } from '../src/store/postgres/migrate.ts';
import { makePool, type Pool } from '../src/store/postgres/pool.ts';
import { BENCH_PROFILE, processPart } from '../dev/production/processes.ts';
import { type Servers, startServers } from '../dev/production/servers.ts';
import { sharedSettings } from '../dev/production/settings.ts';
import { checkHealth } from './health-checks.ts';
import { printStatements } from './statements.ts';

const compose = await readFile(new URL('../docker-compose.yml', import.meta.url), 'utf8');
/** The fleets of the worker processes in `docker-compose.yml`. */
export const COMPOSE_FLEETS = [...compose.matchAll(/worker\.js --fleets (\S+)/g)].map(([, fleets = '']) => fleets);

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
  /** The number of APIs, each with its relay, and of workers of each fleet; the provider reports to the first API. */
  readonly copies?: number;
  /** The fleets of each worker process; by default those of `docker-compose.yml`. */
  readonly fleets?: readonly string[];
}

/** The process ids of an API or worker; the first API is together with the servers and the simulator. */
export type Processes = Readonly<Partial<Record<PartName | 'load' | 'empty worker', number>>>;

/**
 * Runs a measurement against the service as in production: from `dist/`, with Temporal's full server on Postgres and
 * simulated providers, each in a separate process, in a temporary folder. Ends all of them. Health checks run as in
 * production.
 * @param measure receives the application's database, all processes, and the URLs of all APIs
 */
export async function withStack<T>(
  { env = {}, postgres = {}, without = [], reports = true, copies = 1, fleets = COMPOSE_FLEETS }: StackOptions,
  measure: (stack: DevFile, pool: Pool, processes: readonly Processes[], urls: readonly string[]) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-bench-'));
  // Postgres may run as another account, which needs access.
  await chmod(folder, 0o755);
  const progress = makeProgress(process.stderr);
  const { home, release } = await lockHome(folder);
  const { supervisor, pids } = supervise(progress);
  const supervisors = [supervisor];
  const over = new AbortController();
  // Makes the measurement fail, which ends all parts.
  const end = () => void stopAll(supervisors);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  try {
    const servers = await startServers(home, supervisor, progress, !without.includes('temporal'), postgres);
    const { stack, env: settings } = await startService(home, supervisor, servers, { env, reports });
    void checkHealth('api', settings, over.signal);
    const processes = [pids()];
    const urls = [stack.base_url];
    const startMore = async (name: 'api' | 'worker', args: string[] = []) => {
      const more = supervise(progress);
      supervisors.push(more.supervisor);
      const ports = makePorts();
      const port = String(await ports.choose(0));
      const own = { ...settings, [name === 'api' ? 'PORT' : 'METRICS_PORT']: port };
      await more.supervisor.start(name, processPart(name, own, home.logs, args));
      await ports.release();
      processes.push(more.pids());
      if (name === 'api') urls.push(`http://127.0.0.1:${port}`);
      void checkHealth(name, own, over.signal);
    };
    for (let copy = 1; copy < copies; copy++) await startMore('api');
    if (!without.includes('worker')) {
      const workers = Array.from({ length: copies }, () => fleets).flat();
      for (const fleet of workers) await startMore('worker', ['--fleets', fleet]);
    }
    const pool = makePool(servers.DATABASE_URL, 'bench', 4, () => undefined);
    const result = await measure(stack, pool, processes, urls).finally(() => pool.end());
    if (BENCH_PROFILE) await printStatements(servers.adminUrl);
    return result;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
    over.abort();
    await stopAll(supervisors);
    await release();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Stops copies before the servers that they use. */
async function stopAll(supervisors: readonly Supervisor[]): Promise<void> {
  for (const supervisor of supervisors.toReversed()) await supervisor.stop();
}

function supervise(progress: Progress): { supervisor: Supervisor; pids: () => Processes } {
  let running: Running = {};
  const supervisor = makeSupervisor(progress, (current) => {
    running = current;
  });
  return { supervisor, pids: () => Object.fromEntries(Object.entries(running).map(([name, { pid }]) => [name, pid])) };
}

async function startService(
  home: Home,
  supervisor: Supervisor,
  { DATABASE_URL, TEMPORAL_ADDRESS }: Servers,
  { env: given, reports }: Required<Pick<StackOptions, 'env' | 'reports'>>,
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
    TWILIO_ACCOUNT_SID: secrets.twilio_account_sid,
    TWILIO_AUTH_TOKEN: secrets.twilio_auth_token,
    TWILIO_BASE_URL: `http://127.0.0.1:${simulator}`,
    ...given,
  };
  const provider = {
    SIMULATOR_PORT: String(simulator),
    SIMULATOR_SMTP_PORT: String(smtp),
    SIMULATOR_FOLDER: home.inbox,
    ...(reports && { SIMULATOR_CALLBACK_URL: `${url}/callbacks/postmark` }),
  };
  await Promise.all([
    supervisor.start('api', processPart('api', env, home.logs)),
    supervisor.start('simulator', processPart('simulator', { ...env, ...provider }, home.logs)),
  ]);
  await ports.release();
  const temporal = { address: TEMPORAL_ADDRESS, namespace: 'default', uiUrl: null };
  const inboxUrl = `http://127.0.0.1:${simulator}/inbox`;
  const contents = devFileOf({ baseUrl: url, databaseUrl: DATABASE_URL, temporal, inboxUrl, demo }, {});
  const stack = { ...contents, from: `Bench <bench@${demo.domain}>` };
  return { stack, env };
}
