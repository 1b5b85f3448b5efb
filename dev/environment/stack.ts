import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../src/config.ts';
import type { PartName } from '../../src/main/dev-file.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { LOOPBACK_RANGES } from '../../src/lib/ip-ranges.ts';
import { CALLBACK_RETRIES } from '../../src/providers/twilio/callbacks.ts';
import { SETTINGS } from '../../src/settings.ts';
import { demoOrganization, type RunningDemo } from './demo.ts';
import type { Home } from './home.ts';
import { rotateLog } from './logs.ts';
import { nodePart, programOf } from './node-part.ts';
import { homePorts, type Ports } from './ports.ts';
import { adminUrl, createDatabase, postgresPart, prepareCluster, removeStalePidFile } from './postgres.ts';
import { untilAborted } from '../../src/lib/until-aborted.ts';
import { Problem } from './problem.ts';
import type { Progress } from './progress.ts';
import { readSecrets, type Secrets } from './secrets.ts';
import { onFreePorts, type Supervisor } from './supervisor.ts';
import { findTemporalCli } from './temporal-cli.ts';
import { checkTemporal, setRetention, temporalDatabase, temporalPart, withoutTemporal } from './temporal.ts';

export interface Context {
  readonly config: Config;
  /** The environment including `.env`. */
  readonly environment: NodeJS.ProcessEnv;
  readonly home: Home;
  readonly ports: Ports;
  readonly progress: Progress;
  readonly supervisor: Supervisor;
  /** Aborts the start. */
  readonly signal: AbortSignal;
}

export interface Temporal {
  readonly address: string;
  readonly namespace: string;
  /** Null if the server was not started by us. */
  readonly uiUrl: string | null;
}

/** The addresses of the running parts. */
export interface Stack {
  readonly baseUrl: string;
  readonly databaseUrl: string;
  readonly temporal: Temporal;
  /** Null with real providers. */
  readonly inboxUrl: string | null;
  /** The webhook that must be registered at Postmark; null if it is simulated or not used. */
  readonly postmarkWebhook: { readonly url: string; readonly user: string; readonly password: string } | null;
  readonly demo: RunningDemo;
  /** The settings of the API and the worker. */
  readonly settings: Readonly<Record<string, string>>;
}

const UI_PORT = 8_233;
const WORKFLOW_RETENTION = '168h';

/**
 * Starts every part that the settings do not replace by an external one, each as soon as its dependencies are ready, and
 * creates the demonstration organization.
 */
export async function startStack(context: Context): Promise<Stack> {
  const { environment, home, signal } = context;
  const secrets = await readSecrets(home.secrets);
  const [databaseUrl, temporal] = await Promise.all([startDatabase(context, secrets), startTemporal(context)]);
  const pending = untilAborted(demoOrganization(databaseUrl, home.secrets, secrets), signal);
  // Awaited below. An earlier error takes precedence.
  pending.catch(() => undefined);

  const demoDomain = secrets.demo?.domain ?? (await pending).domain;
  const shared = {
    ...(environment['TEMPORAL_ADDRESS'] ? environment : withoutTemporal(environment)),
    ...temporalEnvironment(home, environment, temporal),
    DATABASE_URL: databaseUrl,
    TEMPORAL_UI_URL: environment['TEMPORAL_UI_URL'] || temporal.uiUrl || '',
    ATTACHMENT_STORE: environment['ATTACHMENT_STORE'] || `file:${home.attachments}`,
    WEBHOOK_ALLOW_CIDRS: environment['WEBHOOK_ALLOW_CIDRS'] || LOOPBACK_RANGES.join(','),
    SECRET_KEY: environment['SECRET_KEY'] || secrets.secret_key,
    DOCS_SENDER_DOMAIN: environment['DOCS_SENDER_DOMAIN'] || demoDomain,
    SYSTEM_EMAIL_FROM: environment['SYSTEM_EMAIL_FROM'] || `Sendwright <accounts@${demoDomain}>`,
    SEND_MAX_ATTEMPTS: environment['SEND_MAX_ATTEMPTS'] || '5',
    SEND_INITIAL_INTERVAL: environment['SEND_INITIAL_INTERVAL'] || '1s',
    SEND_MAX_INTERVAL: environment['SEND_MAX_INTERVAL'] || '5s',
  };
  const application = await onFreePorts(() => startApplication(context, shared, secrets));
  return { ...application, databaseUrl, temporal, demo: await pending };
}

async function startDatabase(context: Context, secrets: Secrets): Promise<string> {
  const { config, home, ports, progress, supervisor, signal } = context;
  const url =
    config.DATABASE_URL ??
    (await progress.step('Postgres', async (step) => {
      const cluster = await prepareCluster(home.postgres, secrets.database_password, progress);
      step.rename(`Postgres ${cluster.binaries.version}`);
      await removeStalePidFile(cluster);
      const log = await rotateLog(home.logs, 'postgres');
      const port = await onFreePorts(async () => {
        const free = await ports.choose(homePorts(home.path).postgres);
        await supervisor.start('postgres', postgresPart(cluster, free, log));
        return free;
      });
      return createDatabase(adminUrl(cluster, port), cluster.password);
    }));
  const migrated = migrate(url).catch((error: unknown) => {
    if (config.DATABASE_URL === undefined) throw error;
    throw new Problem(`The database that DATABASE_URL names cannot be used: ${describe(error)}`, { cause: error });
  });
  // A database that is not stopped with this process may never answer.
  const applied = await untilAborted(migrated, signal);
  if (applied.length > 0) progress.print(`  ✓ Migrations applied: ${applied.length}, up to ${applied.at(-1)}`);
  return url;
}

/** Formats an error. For a host with several addresses it has one error for each and no message. */
function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join(', ');
  return error instanceof Error ? error.message : String(error);
}

async function startTemporal(context: Context): Promise<Temporal> {
  const { environment, home, ports, progress, supervisor, signal } = context;
  const namespace = environment['TEMPORAL_NAMESPACE'] || 'default';
  const given = environment['TEMPORAL_ADDRESS'];
  if (given) {
    await progress.step(`Temporal server at ${given}`, () => checkTemporal(environment));
    return { address: given, namespace, uiUrl: null };
  }

  const cli = await findTemporalCli(environment, progress, signal);
  return progress.step('Temporal server', async () => {
    const log = await rotateLog(home.logs, 'temporal');
    const database = await temporalDatabase(home.temporal);
    const server = await onFreePorts(async () => {
      const port = await ports.choose(homePorts(home.path).temporal);
      const uiPort = await preferredPort(context, UI_PORT);
      const chosen = { cli, port, uiPort, database: database.path, namespaces: [namespace] };
      await supervisor.start('temporal', temporalPart(chosen, log));
      return chosen;
    });
    const address = `127.0.0.1:${server.port}`;
    await database.complete(() => setRetention(cli, address, namespace, WORKFLOW_RETENTION));
    return { address, namespace, uiUrl: `http://127.0.0.1:${server.uiPort}` };
  });
}

/** Ignores the user's Temporal profile, which belongs to another server. */
function temporalEnvironment(home: Home, environment: NodeJS.ProcessEnv, temporal: Temporal): NodeJS.ProcessEnv {
  if (environment['TEMPORAL_ADDRESS']) return {};
  return {
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    TEMPORAL_CONFIG_FILE: join(home.path, 'no-temporal.toml'),
  };
}

/**
 * Starts our own processes concurrently, since each takes time to load. Their ports are chosen first. If one of the ports is
 * taken, all of them start again.
 */
async function startApplication(
  context: Context,
  shared: NodeJS.ProcessEnv,
  secrets: Secrets,
): Promise<Pick<Stack, 'baseUrl' | 'inboxUrl' | 'postmarkWebhook' | 'settings'>> {
  const { config, environment, home, progress, supervisor } = context;
  const port = await preferredPort(context, config.PORT);
  const baseUrl = `http://${reachableHost(config.HOST)}:${port}`;
  const isSimulated = config.POSTMARK_SERVER_TOKEN === undefined && config.SMTP_URL === undefined;
  const simulated = isSimulated ? await simulatedProviders(context, secrets, baseUrl) : undefined;
  const user = environment['POSTMARK_WEBHOOK_USER'] || secrets.postmark_webhook_user;
  const password = environment['POSTMARK_WEBHOOK_PASSWORD'] || secrets.postmark_webhook_password;
  const webhook = { POSTMARK_WEBHOOK_USER: user, POSTMARK_WEBHOOK_PASSWORD: password };
  const publicUrl = environment['PUBLIC_URL'] || baseUrl;
  const env = { ...shared, ...simulated?.providers, ...webhook, PUBLIC_URL: publicUrl };

  const start = async (name: PartName, title: string, args: string[], own: NodeJS.ProcessEnv, stopWithin: number) => {
    const log = await rotateLog(home.logs, name);
    const program = fileURLToPath(new URL(`../../${programOf(name)}.js`, import.meta.url));
    const spec = nodePart(program, args, { ...env, ...own }, home.logs, log, stopWithin);
    await progress.step(title, () => supervisor.start(name, spec));
  };
  try {
    await Promise.all([
      start('api', 'API', [], { PORT: String(port), HOST: config.HOST }, 1_500),
      start('worker', 'Worker', ['--fleets', 'all'], {}, 2_000),
      simulated && start('simulator', 'Provider simulator', [], simulated.own, 900),
    ]);
  } catch (error) {
    await supervisor.stop(['api', 'worker', 'simulator']);
    throw error;
  }
  const isReal = config.POSTMARK_SERVER_TOKEN !== undefined;
  const postmarkWebhook = isReal ? { url: `${publicUrl}/callbacks/postmark`, user, password } : null;
  return { baseUrl, inboxUrl: simulated?.inboxUrl ?? null, postmarkWebhook, settings: settingsIn(env) };
}

function settingsIn(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.keys(SETTINGS).map((name): [string, string] => [name, env[name] ?? '']);
  return Object.fromEntries(given.filter(([, value]) => value !== ''));
}

/** Returns the simulator's settings, and the settings of the processes that use it as their provider. */
async function simulatedProviders(context: Context, secrets: Secrets, baseUrl: string) {
  const { config, environment, home, ports } = context;
  const wanted = homePorts(home.path);
  const port = await ports.choose(wanted.simulator);
  const smtpPort = await ports.choose(wanted.smtp);
  return {
    inboxUrl: `http://127.0.0.1:${port}/inbox`,
    providers: {
      EMAIL_PROVIDERS: environment['EMAIL_PROVIDERS'] || 'postmark,smtp',
      POSTMARK_SERVER_TOKEN: secrets.postmark_server_token,
      POSTMARK_ACCOUNT_TOKEN: secrets.postmark_account_token,
      POSTMARK_BASE_URL: `http://127.0.0.1:${port}`,
      SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
      // The simulator's search has no delay, but Twilio's own may have one.
      ...(config.TWILIO_ACCOUNT_SID === undefined && {
        CONFIRM_NOT_FOUND_AFTER: environment['CONFIRM_NOT_FOUND_AFTER'] || '1s',
      }),
      ...simulatedChat(context, secrets, `http://127.0.0.1:${port}`),
    },
    own: {
      SIMULATOR_PORT: String(port),
      SIMULATOR_SMTP_PORT: String(smtpPort),
      SIMULATOR_FOLDER: home.inbox,
      SIMULATOR_CALLBACK_URL: `${baseUrl}/callbacks/postmark`,
      // With a real Meta account there may be no secret for signing reports.
      ...(config.META_ACCESS_TOKEN === undefined && { SIMULATOR_META_CALLBACK_URL: `${baseUrl}/callbacks/meta` }),
      // The signature covers the URL as the API knows it.
      ...(config.TWILIO_AUTH_TOKEN === undefined && {
        SIMULATOR_TWILIO_INBOUND_URL: `${environment['PUBLIC_URL'] || baseUrl}/callbacks/twilio/inbound${CALLBACK_RETRIES}`,
      }),
    },
  };
}

/** Returns the settings of Twilio and Meta, each simulated unless it has credentials. */
function simulatedChat({ config }: Context, secrets: Secrets, url: string): NodeJS.ProcessEnv {
  const twilio = {
    TWILIO_ACCOUNT_SID: secrets.twilio_account_sid,
    TWILIO_AUTH_TOKEN: secrets.twilio_auth_token,
    TWILIO_BASE_URL: url,
  };
  const meta = {
    META_ACCESS_TOKEN: secrets.meta_access_token,
    META_APP_SECRET: secrets.meta_app_secret,
    META_VERIFY_TOKEN: secrets.meta_verify_token,
    META_BASE_URL: url,
  };
  return {
    ...(config.TWILIO_AUTH_TOKEN === undefined && twilio),
    ...(config.META_ACCESS_TOKEN === undefined && meta),
  };
}

/** Returns the host in the URL of a server that listens at `host`. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

async function preferredPort({ ports, progress }: Context, wanted: number): Promise<number> {
  const port = await ports.choose(wanted);
  if (wanted !== 0 && port !== wanted) progress.print(`  Port ${wanted} is taken, using ${port}`);
  return port;
}
