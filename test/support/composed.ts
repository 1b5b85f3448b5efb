import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makePorts } from '../../dev/environment/ports.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type ComposeFile, inOrder, readComposeFile, readEnvFile, type Service, words } from './compose-file.ts';
import { type Container, makeContainer } from './container.ts';
import { ROOT } from './root.ts';

const run = promisify(execFile);
/** The environment variables that the Dockerfile sets. */
const IMAGE = { NODE_ENV: 'production', PATH: process.env['PATH'] ?? '' };
const SECRETS = '/run/secrets/';

export interface ComposedOptions {
  /** For volumes, secrets, logs and other files of containers. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  /** Settings on top of deploy/demo.env. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Further settings of the simulator. */
  readonly simulator?: Readonly<Record<string, string>>;
}

/** The processes of docker-compose.yml with the profile `demo`, without containers. */
export interface Composed {
  readonly file: ComposeFile;
  /** The containers of a service, or all that keep running, in the order of their start. */
  readonly containers: (service?: string) => Container[];
  /** Starts these services, or all, one after the other: the next once a task has ended, or the service is healthy. */
  readonly start: (...services: string[]) => Promise<void>;
  /** The URL of each replica of the API. */
  readonly urls: readonly string[];
  readonly simulatorUrl: string;
  /** The simulator's inbox on disk. */
  readonly inbox: string;
  /** Runs the command line in a container of the API. @returns the printed JSON */
  readonly admin: (...args: string[]) => Promise<Record<string, string>>;
  /** Sends SIGTERM to all. @returns how each ended */
  readonly stop: () => Promise<Record<string, number | string>>;
  /** Kills the remaining processes. */
  readonly kill: () => Promise<void>;
}

/** Prepares the processes of `docker compose --env-file deploy/demo.env --profile demo up`. */
export async function compose(options: ComposedOptions): Promise<Composed> {
  const { folder, databaseUrl, temporalAddress, settings = {}, simulator = {} } = options;
  const demo = readEnvFile('deploy/demo.env');
  const file = readComposeFile(demo);
  const secrets = await makeSecrets(folder, databaseUrl);
  const ports = makePorts();
  // Temporal is started by the test.
  const hosts: Record<string, string> = { 'temporal:7233': temporalAddress };
  const ours = inOrder(file.services).filter((name) => file.services[name]?.image.startsWith('sendwright'));
  const replicas = ours.flatMap((service) => {
    const count = file.services[service]?.deploy?.replicas ?? 1;
    return Array.from({ length: count }, (_, index) => ({ service, name: `${service}-${index + 1}` }));
  });

  // Ports first, since they are in the settings of other services.
  const listening = new Map<string, Record<string, string>>();
  for (const { service, name } of replicas) {
    const chosen: Record<string, string> = {};
    for (const [setting, value] of Object.entries(environmentOf(file.services[service] as Service))) {
      if (!/(?:^|_)PORT$/.test(setting)) continue;
      chosen[setting] = String(await ports.choose(0));
      hosts[`${service}:${value}`] = `127.0.0.1:${chosen[setting]}`;
    }
    listening.set(name, chosen);
  }
  const portsOfApi = replicas.flatMap(({ service, name }) => {
    return service === 'api' ? Number(listening.get(name)?.['PORT']) : [];
  });
  const proxy: Balancer = await startBalancer(portsOfApi);
  for (const name of ['proxy', 'sendwright.localhost']) hosts[`${name}:3000`] = `127.0.0.1:${proxy.port}`;

  const app = await makeApp(folder);
  const all = await Promise.all(
    replicas.map(async ({ service, name }) => {
      const declared = file.services[service] as Service;
      const [after, before] = service === 'simulator' ? [simulator, {}] : [{}, settings];
      const environment = { ...envFilesOf(declared), ...before, ...environmentOf(declared), ...after };
      const places = placesOf(declared, folder, name, secrets);
      const env = translate({ ...environment, ...listening.get(name) }, hosts, places);
      await mkdir(join(folder, 'logs'), { recursive: true });
      return makeContainer({
        name,
        service,
        command: words(declared.command),
        healthcheck: declared.healthcheck?.test ?? null,
        env: { ...IMAGE, ...env },
        cwd: app,
        log: join(folder, 'logs', `${name}.log`),
      });
    }),
  );
  const of = (service: string) => all.filter((one) => one.service === service);
  const lasting = () => all.filter(({ service }) => file.services[service]?.restart !== 'no');

  return {
    file,
    containers: (service) => (service === undefined ? lasting() : of(service)),
    async start(...services) {
      const wanted = services.length > 0 ? ours.filter((name) => services.includes(name)) : ours;
      for (const service of wanted) {
        await Promise.all(of(service).map((one) => one.start()));
        const isTask = file.services[service]?.restart === 'no';
        await Promise.all(of(service).map((one) => (isTask ? one.completed() : one.healthy())));
      }
    },
    urls: portsOfApi.map((port) => `http://127.0.0.1:${port}`),
    simulatorUrl: `http://${hosts['simulator:3025'] ?? ''}`,
    inbox: join(folder, 'volumes', 'inbox'),
    async admin(...args) {
      const [api] = of('api');
      const { stdout } = await run(process.execPath, ['dist/src/main/admin.js', ...args], { cwd: app, env: api?.env });
      return JSON.parse(stdout) as Record<string, string>;
    },
    async stop() {
      const running = lasting();
      const codes = await Promise.all(running.map(async (one) => [one.name, await one.stop()] as const));
      return Object.fromEntries(codes);
    },
    async kill() {
      await Promise.all(all.map((one) => one.kill()));
      await proxy.close();
      await ports.release();
    },
  };
}

function environmentOf({ environment = {} }: Service): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
}

function envFilesOf({ env_file: files = [] }: Service): Record<string, string> {
  const paths = files.map((file) => (typeof file === 'string' ? file : file.path));
  return Object.assign({}, ...paths.map(readEnvFile)) as Record<string, string>;
}

/** Runs the script of the guide, and replaces the host of the database, which Compose would resolve. */
async function makeSecrets(folder: string, databaseUrl: string): Promise<string> {
  const secrets = join(folder, 'secrets');
  await run('sh', [`${ROOT}deploy/secrets.sh`, secrets]);
  await writeFile(join(secrets, 'database_url'), databaseUrl);
  await writeFile(join(secrets, 'migrate_database_url'), databaseUrl);
  return secrets;
}

/** The folder `/app` of the images. */
async function makeApp(folder: string): Promise<string> {
  const app = join(folder, 'app');
  await mkdir(app, { recursive: true });
  for (const name of ['dist', 'node_modules', 'package.json', 'src', 'dev', 'tsconfig.json']) {
    await symlink(join(ROOT, name), join(app, name)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
  }
  return app;
}

/**
 * Maps the paths of a container: declared secrets and volumes to shared folders, other files to its own folder.
 */
function placesOf(service: Service, folder: string, name: string, secrets: string): [string, string][] {
  const volumes = (service.volumes ?? []).map((volume): [string, string] => {
    const [source = '', target = ''] = volume.split(':');
    return [target, source.startsWith('.') ? join(ROOT, source) : join(folder, 'volumes', source)];
  });
  const files = (service.secrets ?? []).map((secret): [string, string] => [SECRETS + secret, join(secrets, secret)]);
  return [...volumes, ...files, ['/var/lib/sendwright', join(folder, 'containers', name)]];
}

function translate(
  env: Readonly<Record<string, string>>,
  hosts: Readonly<Record<string, string>>,
  places: readonly (readonly [string, string])[],
): Record<string, string> {
  const translated = Object.entries(env).map(([name, value]) => {
    let text = value === '0.0.0.0' ? '127.0.0.1' : value;
    for (const [host, real] of Object.entries(hosts)) text = text.replaceAll(host, real);
    // The rest of the text is a path within the place.
    const place = places.find(([path]) => text.includes(path));
    return [name, place ? text.replace(place[0], place[1]) : text];
  });
  return Object.fromEntries(translated) as Record<string, string>;
}
