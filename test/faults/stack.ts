import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processPart } from '../../dev/production/processes.ts';
import { startServers } from '../../dev/production/servers.ts';
import { sharedSettings } from '../../dev/production/settings.ts';
import { lockHome, type Home } from '../../dev/environment/home.ts';
import { nodePart } from '../../dev/environment/node-part.ts';
import { makePorts } from '../../dev/environment/ports.ts';
import type { Progress } from '../../dev/environment/progress.ts';
import { readSecrets, type Secrets } from '../../dev/environment/secrets.ts';
import { findTemporalCli } from '../../dev/environment/temporal-cli.ts';
import { temporalDatabase, temporalPart } from '../../dev/environment/temporal.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';
import { programPath } from '../support/program.ts';
import { makeParts, type Parts } from './parts.ts';
import { startProxy, type TcpProxy } from './proxy.ts';

/** Connections that a fault may disturb, by client and server. */
export type ProxyName =
  | 'api-postgres'
  | 'api-temporal'
  | 'worker-postgres'
  | 'worker-temporal'
  | 'worker-provider'
  | 'worker-smtp'
  | 'provider-api';
type Service = 'api' | 'worker' | 'simulator';

export interface StackOptions {
  /** Runs `dist` with Temporal's full server instead of the sources with its development server. */
  readonly production: boolean;
  /** Connections through a proxy. */
  readonly proxies?: readonly ProxyName[];
  /** Additional settings of one process. */
  readonly env?: Partial<Record<Service, NodeJS.ProcessEnv>>;
  /** Folder of attachments; by default in the stack's own folder. */
  readonly files?: string;
  /** Folder of the database cluster; by default in the stack's own folder. */
  readonly postgres?: string;
  readonly print: (line: string) => void;
}

/** The whole service, each part in its own process. */
export interface Stack {
  readonly folder: string;
  /** The folder of Postgres's cluster. */
  readonly cluster: string;
  readonly url: string;
  /** To the database, without a proxy. */
  readonly pool: Pool;
  readonly temporalAddress: string;
  readonly simulatorUrl: string;
  /** The simulator's inbox, to which it writes messages before it answers. */
  readonly inbox: string;
  readonly parts: Parts;
  readonly proxy: (name: ProxyName) => TcpProxy;
  /** Makes all proxies forward everything again. */
  readonly restoreNetwork: () => void;
  /** Sets how the providers behave; see the simulator's Behaviour. */
  readonly setBehaviour: (behaviour: object) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
/** Short intervals, so that a run ends soon, and enough attempts to outlast every fault. */
const RETRIES = {
  SEND_MAX_ATTEMPTS: '60',
  SEND_INITIAL_INTERVAL: '500ms',
  SEND_MAX_INTERVAL: '5s',
  // The simulator finds a message as soon as it has taken it.
  CONFIRM_NOT_FOUND_AFTER: '1s',
};

/** Starts the stack in its own folder, which `stop` removes. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { production, print } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-faults-'));
  // Postgres may run under another account.
  await chmod(folder, 0o755);
  const { home, release } = await lockHome(folder);
  const parts = makeParts(print);
  const ports = makePorts();
  const proxies = new Map<ProxyName, TcpProxy>();
  // Postgres and Temporal would outlive this process.
  const interrupt = () => void stop().finally(() => process.exit(130));
  for (const signal of SIGNALS) process.once(signal, interrupt);
  const stop = async () => {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await parts.stop();
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
    await ports.release();
    await release();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const database = { ...home, postgres: options.postgres ?? home.postgres };
    const servers = await startServers(database, parts, { ...NO_PROGRESS, print }, production);
    const temporalAddress = production ? servers.TEMPORAL_ADDRESS : await startDevServer(home, parts);
    const { DATABASE_URL } = servers;
    await migrate(DATABASE_URL);
    const secrets = await readSecrets(home.secrets);
    const [api, simulator, smtp] = [await ports.choose(0), await ports.choose(0), await ports.choose(0)];

    const proxyTo = async (name: ProxyName, target: number) => {
      if (!options.proxies?.includes(name)) return target;
      const proxy = await startProxy(target);
      proxies.set(name, proxy);
      return proxy.port;
    };
    const url = `http://127.0.0.1:${api}`;
    const reports = `http://127.0.0.1:${await proxyTo('provider-api', api)}`;
    const shared = {
      ...sharedSettings(home, secrets, {
        url: reports,
        smtpPort: await proxyTo('worker-smtp', smtp),
        files: options.files,
      }),
      ...chatSettings(secrets),
      ...RETRIES,
    };
    const own = async (name: 'api' | 'worker') => ({
      DATABASE_URL: withPort(DATABASE_URL, await proxyTo(`${name}-postgres`, Number(new URL(DATABASE_URL).port))),
      TEMPORAL_ADDRESS: `127.0.0.1:${await proxyTo(`${name}-temporal`, Number(temporalAddress.split(':')[1]))}`,
    });
    const provider = `http://127.0.0.1:${await proxyTo('worker-provider', simulator)}`;
    const providers = { POSTMARK_BASE_URL: provider, TWILIO_BASE_URL: provider, META_BASE_URL: provider };
    const env: Record<Service, NodeJS.ProcessEnv> = {
      api: { ...(await own('api')), PORT: String(api), HOST: '127.0.0.1' },
      worker: { ...(await own('worker')), ...providers },
      simulator: {
        SIMULATOR_PORT: String(simulator),
        SIMULATOR_SMTP_PORT: String(smtp),
        SIMULATOR_FOLDER: home.inbox,
        SIMULATOR_CALLBACK_URL: `${reports}/callbacks/postmark`,
        SIMULATOR_META_CALLBACK_URL: `${reports}/callbacks/meta`,
      },
    };
    const startService = (name: Service) => {
      const all = { ...shared, ...env[name], ...options.env?.[name] };
      const log = join(home.logs, `${name}.log`);
      const spec = production
        ? processPart(name, all, home.logs)
        : { ...nodePart(programPath(name), [], all, home.logs, log, 10_000), cwd: home.path };
      return parts.start(name, spec);
    };
    await Promise.all((['api', 'worker', 'simulator'] as const).map(startService));

    const pool = makePool(DATABASE_URL, 'faults', 3, () => undefined);
    const simulatorUrl = `http://127.0.0.1:${simulator}`;
    return {
      folder,
      cluster: join(database.postgres, 'data'),
      url,
      pool,
      temporalAddress,
      simulatorUrl,
      inbox: home.inbox,
      parts,
      proxy(name) {
        const proxy = proxies.get(name);
        if (!proxy) throw new Error(`there is no proxy ${name}`);
        return proxy;
      },
      restoreNetwork() {
        for (const proxy of proxies.values()) {
          proxy.open();
          proxy.release();
        }
      },
      setBehaviour: (behaviour) => setBehaviour(simulatorUrl, behaviour),
      async stop() {
        await pool.end();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Prints no progress. */
export const NO_PROGRESS: Progress = {
  step: (_name, work) => work({ detail: () => undefined, rename: () => undefined }),
  print: () => undefined,
};

/** Starts the development server with its state in a file of the home. */
export async function startDevServer(home: Home, parts: Parts): Promise<string> {
  const cli = await findTemporalCli(process.env, NO_PROGRESS);
  const ports = makePorts();
  const port = await ports.choose(0);
  const database = await temporalDatabase(home.temporal);
  const server = { cli, port, database: database.path, namespaces: ['default'] };
  await parts.start('temporal', temporalPart(server, join(home.logs, 'temporal.log')));
  await ports.release();
  return `127.0.0.1:${port}`;
}

function chatSettings(secrets: Secrets): NodeJS.ProcessEnv {
  return {
    TWILIO_ACCOUNT_SID: secrets.twilio_account_sid,
    TWILIO_AUTH_TOKEN: secrets.twilio_auth_token,
    META_ACCESS_TOKEN: secrets.meta_access_token,
    META_APP_SECRET: secrets.meta_app_secret,
    META_VERIFY_TOKEN: secrets.meta_verify_token,
  };
}

function withPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}
