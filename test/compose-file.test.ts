import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { PAGES } from '../src/dashboard/app.ts';
import { ROUTES } from '../src/http/app.ts';
import { SETTINGS } from '../src/settings.ts';
import { DYNAMIC_CONFIG } from '../dev/environment/temporal.ts';
import { writePrograms } from './deploy/programs.ts';
import {
  type ComposeFile,
  inOrder,
  networksOf,
  readComposeFile,
  readEnvFile,
  type Service,
  words,
} from './support/compose-file.ts';
import { temporaryFolder } from './support/folder.ts';
import { ROOT } from './support/root.ts';

const run = promisify(execFile);
const { services, volumes, secrets, networks } = readComposeFile(readEnvFile('deploy/demo.env'));
const all = Object.entries(services);
const ours = all.filter(([, { image }]) => image.startsWith('sendwright:'));
/** Services that run once before others start. */
const ONCE = ['migrate', 'roles', 'temporal-namespace', 'temporal-schema'];
/** Services whose image has no program for a health check. */
const WITHOUT_HEALTH_CHECK = ['temporal-ui'];
const TEMPORALS = ['TEMPORAL_ADDRESS', 'TEMPORAL_API_KEY'];

const names = (list: readonly (readonly [string, unknown])[]) => list.map(([name]) => name).sort();
const environment = ({ environment: env = {} }: Service) => Object.keys(env);

describe('docker-compose.yml', () => {
  it('starts every part; simulator and monitoring only in their profiles', () => {
    const fleets = ['messages', 'email', 'email-groups', 'chat', 'webhooks', 'upkeep'].map(
      (fleet) => `worker-${fleet}`,
    );
    const others = ['postgres', 'temporal', 'temporal-ui', 'proxy', 'api'];
    const optional = all.flatMap(([name, { profiles }]) => (profiles ? [[name, profiles]] : []));
    assert.deepEqual(Object.fromEntries(optional), {
      simulator: ['demo'],
      prometheus: ['monitoring'],
      grafana: ['monitoring'],
    });
    assert.deepEqual(names(all), [...fleets, ...others, ...ONCE, 'simulator', 'prometheus', 'grafana'].sort());
    assert.equal(services['api']?.deploy?.replicas, 2, 'replicas of the API');
  });

  it('builds each image once: parallel builds of one tag refuse each other', () => {
    const built = all.filter(([, { build }]) => build).map(([, { image }]) => image);
    assert.deepEqual([...built].sort(), [...new Set(built)].sort());
    for (const [name, { image, pull_policy: policy }] of ours) {
      assert.ok(built.includes(image), `${name}: nothing builds ${image}`);
      assert.equal(policy, 'never', `${name}: no registry has ${image}`);
    }
  });

  it('lets Postgres accept all connections of its processes, also while replicas are added or replaced', () => {
    const [, limit] = /max_connections=(\d+)/.exec(words(services['postgres']?.command).join(' ')) ?? [];
    const temporal = services['temporal']?.environment ?? {};
    const ofTemporal = 4 * (Number(temporal['SQL_MAX_CONNS']) + Number(temporal['SQL_VIS_MAX_CONNS']));
    const needed = ours.map(([name, { deploy }]) => {
      const perProcess = name === 'migrate' ? 1 : 20 + (name === 'api' ? 2 : 4);
      return perProcess * (deploy?.replicas ?? 1);
    });
    // The API has twice its replicas during an upgrade; two more email workers; administrators and backups.
    const spare = 2 * 22 + 2 * 24 + 20;
    const sum = needed.reduce((total, count) => total + count, ofTemporal + spare);
    assert.ok(sum <= Number(limit), `${sum} connections for ${limit}`);
  });

  it('keeps the demo apart from a real installation', () => {
    const real = readComposeFile({});
    const demo = readEnvFile('deploy/demo.env');
    assert.equal(demo['COMPOSE_PROJECT_NAME'], 'sendwright-demo');
    assert.equal(demo['COMPOSE_PROFILES'], 'demo', 'every command of the demo includes the simulator');
    for (const [name, { file }] of Object.entries(secrets)) assert.notEqual(file, real.secrets[name]?.file);
    assert.notDeepEqual(networks, real.networks, 'both can run on one machine');
  });

  it('has dependencies that exist, without a cycle, with the right condition', () => {
    assert.equal(inOrder(services).length, all.length);
    for (const [name, { depends_on: needed = {} }] of all) {
      for (const [other, { condition }] of Object.entries(needed)) {
        const found = services[other];
        assert.ok(found, `${name} depends on ${other}, which is not there`);
        const wanted = ONCE.includes(other) ? 'service_completed_successfully' : 'service_healthy';
        assert.equal(condition, wanted, `${name} waits for ${other}`);
        if (wanted === 'service_healthy') assert.ok(found.healthcheck, `${other} has no health check`);
      }
    }
  });

  it('gives our processes settings that exist', () => {
    const known = new Set([...Object.keys(SETTINGS), ...TEMPORALS]);
    for (const [name, service] of ours) {
      for (const setting of environment(service)) {
        assert.ok(known.has(setting.replace(/_FILE$/, '')), `${name}: ${setting} is no setting`);
      }
    }
    const { simulator } = services;
    const source = readFileSync(`${ROOT}dev/simulator/main.ts`, 'utf8');
    for (const setting of environment(simulator as Service)) {
      assert.ok(source.includes(setting), `simulator: ${setting} is no setting of it`);
    }
    const ofCompose = ['COMPOSE_PROJECT_NAME', 'COMPOSE_PROFILES', 'SECRETS', 'SUBNET', 'SETTINGS_FILE'];
    for (const setting of Object.keys(readEnvFile('deploy/demo.env'))) {
      assert.ok(known.has(setting) || ofCompose.includes(setting), `demo.env: ${setting} is no setting`);
    }
  });

  it('gives each process the secrets that it reads, and no others; every one is made by deploy/secrets.sh', async (t) => {
    for (const [name, service] of ours) {
      const read = Object.entries(service.environment ?? {}).flatMap(([setting, value]) => {
        return setting.endsWith('_FILE') ? String(value) : [];
      });
      assert.deepEqual(read.sort(), (service.secrets ?? []).map((secret) => `/run/secrets/${secret}`).sort(), name);
    }
    for (const [name, { secrets: used = [] }] of all) {
      for (const secret of used) assert.ok(secrets[secret], `${name}: ${secret} is no secret`);
    }
    const folder = join(await temporaryFolder(t), 'secrets');
    await run('sh', [`${ROOT}deploy/secrets.sh`, folder]);
    for (const [secret, { file }] of Object.entries(secrets)) {
      assert.equal(file, `./secrets-demo/${secret}`);
      assert.ok(existsSync(join(folder, secret)), `${secret} is not made`);
    }
  });

  it('stores data in volumes and shares attachments', () => {
    const mounted = (name: string) => services[name]?.volumes ?? [];
    for (const name of ['api', 'worker-email', 'worker-email-groups', 'worker-upkeep']) {
      assert.ok(mounted(name).includes('attachments:/var/lib/sendwright/attachments'), `${name} sees the files`);
    }
    assert.ok(mounted('postgres').includes('postgres:/var/lib/postgresql'), 'the database is kept');
    for (const [name, { volumes: used = [] }] of all) {
      for (const volume of used) {
        const [source = ''] = volume.split(':');
        const found = source.startsWith('./') ? existsSync(join(ROOT, source)) : source in volumes;
        assert.ok(found, `${name}: ${source} is not there`);
      }
    }
  });

  it('restarts lasting services, with health checks and limits', () => {
    for (const [name, { restart, healthcheck, deploy, environment, stop_grace_period: grace }] of all) {
      const isOnce = ONCE.includes(name);
      assert.equal(restart, isOnce ? 'no' : 'unless-stopped', `${name}: restart`);
      assert.equal(healthcheck !== undefined, !isOnce && !WITHOUT_HEALTH_CHECK.includes(name), `${name}: health check`);
      const { cpus, memory } = deploy?.resources?.limits ?? {};
      assert.equal(memory === undefined, isOnce, `${name}: memory limit`);
      // Docker refuses to start a container with more CPUs than the machine has.
      assert.ok(Number(cpus ?? 1) <= 1, `${name}: CPU limit`);
      if (name.startsWith('worker-') || name === 'api') {
        const timeout = Number.parseInt(String(environment?.['SHUTDOWN_TIMEOUT'] ?? '30s'), 10);
        assert.ok(Number.parseInt(grace ?? '', 10) > timeout, `${name} gets longer than it takes to end in good order`);
      }
    }
  });

  it('has networks in which each service reaches what it uses, and Postgres and Temporal are reached by nothing else', () => {
    const reaching = (name: string) => {
      const shared = networksOf(services[name] as Service);
      return names(
        all.filter(([other, each]) => other !== name && networksOf(each).some((one) => shared.includes(one))),
      );
    };
    const processes = names(ours.filter(([name]) => name !== 'migrate'));
    const users = [...processes, 'migrate', 'roles', 'temporal', 'temporal-schema'];
    assert.deepEqual(reaching('postgres'), users.sort());
    for (const stranger of ['proxy', 'prometheus', 'grafana']) {
      assert.ok(!reaching('temporal').includes(stranger), `${stranger} reaches Temporal`);
    }
    assert.deepEqual(reaching('proxy'), ['api', 'simulator'], 'the API trusts all addresses of this network');
    assert.deepEqual(reaching('prometheus'), [...processes, 'grafana'].sort());
    for (const [name, { environment: env = {}, depends_on: needed = {}, ports = [] }] of all) {
      const used = Object.keys(services).filter((other) =>
        Object.values(env).some((value) => new RegExp(`(?:^|//)${other}(?::|$)`).test(String(value))),
      );
      // What runs once is waited for, not called.
      for (const other of [...used, ...Object.keys(needed).filter((one) => !ONCE.includes(one))]) {
        assert.ok(other === name || reaching(other).includes(name), `${name} does not reach ${other}`);
      }
      const isOpen = networksOf(services[name] as Service).some((one) => networks[one]?.internal !== true);
      assert.ok(isOpen || ports.length === 0, `${name}: an internal network has no published ports`);
    }
  });

  it('publishes ports on loopback only', () => {
    for (const [name, { ports = [] }] of all) {
      for (const port of ports) assert.ok(port.startsWith('127.0.0.1:'), `${name} publishes ${port}`);
    }
  });

  it('lets every published port be changed, since another program may use it', () => {
    const document = parse(readFileSync(`${ROOT}docker-compose.yml`, 'utf8'), { merge: true }) as ComposeFile;
    const published = Object.values(document.services).flatMap(({ ports = [] }) => ports);
    assert.equal(published.length, 5);
    for (const port of published) assert.match(port, /^(?:127\.0\.0\.1:)?\$\{[A-Z_]+:-[\d.:]+\}:\d+$/);
  });

  it('lets the proxy accept every body that the API accepts', async (t) => {
    const folder = await temporaryFolder(t);
    const PATH = await writePrograms(folder, { caddy: 'echo "$MAX_BODY_BYTES"' });
    const ofRoutes = ROUTES.map(([, , , { bodyLimit = 0 }]) => bodyLimit);
    const ofPages = PAGES.map(([, , , { bodyLimit = 0 }]) => bodyLimit);
    for (const limit of ['', '1', '45088768', '1073741824']) {
      const { proxy } = readComposeFile({ MAX_BODY_BYTES: limit }).services;
      const [shell = '', ...args] = [...(proxy?.entrypoint ?? []), ...words(proxy?.command)];
      const env = { PATH, MAX_BODY_BYTES: String(proxy?.environment?.['MAX_BODY_BYTES']), TRUST_PROXY: '' };
      const accepted = Number((await run(shell, args, { env })).stdout);
      const largest = Math.max(Number(limit || SETTINGS.MAX_BODY_BYTES.fallback), ...ofRoutes, ...ofPages);
      assert.ok(accepted > largest, `${accepted} bytes with MAX_BODY_BYTES=${limit}`);
    }
  });

  it('has Prometheus scrape the API and every worker, and Grafana show the dashboard', () => {
    const read = (path: string): unknown => parse(readFileSync(`${ROOT}deploy/${path}`, 'utf8'));
    const { scrape_configs: jobs } = read('prometheus/prometheus.yml') as {
      scrape_configs: { dns_sd_configs: { names: string[]; port: number }[]; relabel_configs: unknown }[];
    };
    for (const { relabel_configs: rules } of jobs) {
      assert.deepEqual(rules, [{ source_labels: ['__meta_dns_name'], target_label: 'service' }], 'for the alerts');
    }
    const scraped = jobs.flatMap(({ dns_sd_configs: found }) =>
      found.flatMap(({ names: hosts, port }) => hosts.map((host) => [host, port] as const)),
    );
    const measured = ours.flatMap(([name, { environment: env = {} }]) => {
      const port = env['METRICS_PORT'] ?? env['PORT'];
      return port === undefined ? [] : [[name, Number(port)] as const];
    });
    assert.deepEqual([...scraped].sort(), [...measured].sort());

    const { datasources } = read('grafana/provisioning/datasources/prometheus.yml') as {
      datasources: { url: string }[];
    };
    assert.deepEqual(
      datasources.map(({ url }) => url),
      ['http://prometheus:9090'],
    );
    const { providers } = read('grafana/provisioning/dashboards/sendwright.yml') as {
      providers: { options: { path: string } }[];
    };
    const mounted = services['grafana']?.volumes ?? [];
    assert.ok(mounted.includes(`./deploy/grafana/sendwright.json:${providers[0]?.options.path}/sendwright.json:ro`));
  });

  it('runs programs of the image', () => {
    const dockerfile = readFileSync(`${ROOT}Dockerfile`, 'utf8');
    const runtime = dockerfile.slice(dockerfile.indexOf('AS runtime'));
    const commands = ours.flatMap(([, { command, healthcheck }]) => [words(command), healthcheck?.test.slice(1) ?? []]);
    const inDockerfile = [...runtime.matchAll(/CMD (\[.*\])/g)].map(
      ([, list]) => JSON.parse(list as string) as string[],
    );
    for (const command of [...commands, ...inDockerfile].filter(({ length }) => length > 0)) {
      const [program, script = ''] = command;
      assert.equal(program, 'node', command.join(' '));
      const source = script.replace(/^dist\//, '').replace(/\.js$/, '.ts');
      assert.ok(script.startsWith('dist/') && existsSync(join(ROOT, source)), `${script} is built from nothing`);
    }
    const fleets = ours.flatMap(([, { command }]) => /--fleets (\S+)/.exec(words(command).join(' '))?.[1] ?? []);
    assert.deepEqual(fleets.sort(), ['chat', 'email-groups', 'email-single', 'messages', 'upkeep', 'webhooks']);
    assert.match(runtime, /\nUSER node\n/, 'a plain user');
    assert.match(runtime, /\nHEALTHCHECK /, 'a health check');
  });

  it('limits Temporal as npm start does', () => {
    const given = parse(readFileSync(`${ROOT}deploy/temporal-dynamic-config.yaml`, 'utf8')) as Record<
      string,
      { value: unknown }[]
    >;
    const values = Object.entries(given).map(([key, rules]) => [key, rules.map(({ value }) => value)]);
    const wanted = Object.entries(DYNAMIC_CONFIG).map(([key, value]) => [key, [value]]);
    assert.deepEqual(Object.fromEntries(values), Object.fromEntries(wanted));
  });
});
