import { spawn } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../../dev/environment/cache.ts';
import { ROOT } from '../support/root.ts';
import { compose, printMemory, run } from './docker.ts';
import { hasEngine, privateEngineProblem, startEngine } from './engine.ts';
import { prepareImages } from './images.ts';
import * as steps from './steps.ts';

/**
 * Runs docker-compose.yml with the demo on a container engine, through the procedures of docs/maintenance.md:
 * `npm run compose:real`. Uses the engine that `docker` reaches, else starts a private one, for which it must be root.
 *   COMPOSE_REAL_FOLDER  where a private engine keeps its images; by default in the cache of `npm start`
 *   COMPOSE_REAL_STORE   image store of a private engine: `containerd` (default) or `overlay2`
 *   COMPOSE_REAL_STEPS   only these steps, separated by commas, after the first start
 *   COMPOSE_REAL_LOG     where the log goes besides standard output
 */
const folder = process.env['COMPOSE_REAL_FOLDER'] || join(cacheFolder(process.env), 'compose-real');
const store = process.env['COMPOSE_REAL_STORE'] || 'containerd';
/** Set for the process that runs inside the network namespace of a private engine. */
const INSIDE = 'COMPOSE_REAL_INSIDE';
const PROJECT = 'sendwright-real';
const PORTS = { TEMPORAL_UI_PORT: '3401', INBOX_PORT: '3402', PROMETHEUS_PORT: '3403', GRAFANA_PORT: '3404' };

const log = process.env['COMPOSE_REAL_LOG'];
const began = Date.now();
function print(line: string): void {
  const text = `${((Date.now() - began) / 1_000).toFixed(0).padStart(5)} s  ${line}`;
  console.log(text);
  if (log) appendFileSync(log, `${text}\n`);
}

if (process.env[INSIDE]) await runSteps(true);
else if (await hasEngine()) await runSteps(false);
else process.exitCode = await runInPrivateEngine();

async function runInPrivateEngine(): Promise<number> {
  const problem = privateEngineProblem();
  if (problem !== undefined) {
    console.error(`No container engine answers to "docker info", and a private one cannot be started: ${problem}`);
    return 1;
  }
  if (log) writeFileSync(log, '');
  const engine = await startEngine(folder, store);
  // Ctrl-C reaches the run inside as well, which cleans up; the engine ends after it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  try {
    const inside = spawn(
      'nsenter',
      [`--net=/run/netns/${engine.namespace}`, process.execPath, ...process.execArgv, fileURLToPath(import.meta.url)],
      { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1', DOCKER_HOST: engine.host } },
    );
    return await new Promise((resolve) => inside.once('exit', (code) => resolve(code ?? 1)));
  } finally {
    await engine.stop();
  }
}

async function runSteps(isOwnEngine: boolean): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'sendwright-compose-real-'));
  const at: steps.Installation = {
    folder: copy,
    project: PROJECT,
    baseUrl: 'http://127.0.0.1:3400',
    inboxUrl: `http://127.0.0.1:${PORTS.INBOX_PORT}/inbox`,
    isOwnEngine,
    print,
    env: {
      ...process.env,
      COMPOSE_ENV_FILES: 'deploy/demo.env',
      COMPOSE_PROJECT_NAME: PROJECT,
      COMPOSE_PROGRESS: 'plain',
      SECRETS: './secrets',
      SUBNET: '172.30.89.0/24',
      PUBLISH: '127.0.0.1:3400',
      ...PORTS,
      SENDWRIGHT_VERSION: 'real-1',
    },
  };
  try {
    await copyProject(copy);
    print(await versions(at));
    const origins = await prepareImages(isOwnEngine ? folder : undefined, print);
    await compose(at, 'down', '--volumes', '--remove-orphans');
    await run(at, 'docker', ['image', 'rm', '--force', 'sendwright:real-1', 'sendwright-simulator:real-1']);
    const customer = await steps.firstStart(at);
    await printMemory(at);
    const all: Record<string, () => Promise<void>> = {
      again: () => steps.nothingToDo(at),
      crash: () => steps.crashEach(at, customer),
      scale: () => steps.scale(at, customer),
      upgrade: () => steps.upgrade(at, customer, 'real-2'),
      down: () => steps.downAndUp(at, customer),
      restore: () => steps.backupAndRestore(at, customer),
      inbox: () => steps.countInbox(at, customer),
      monitoring: () =>
        steps.monitoring(at, origins.get('grafana/grafana:12.1.1') === 'registry', PORTS.PROMETHEUS_PORT),
    };
    const wanted = process.env['COMPOSE_REAL_STEPS']?.split(',') ?? Object.keys(all);
    for (const name of wanted) {
      print(`── ${name}`);
      await (all[name] as () => Promise<void>)();
    }
    print('everything passed');
  } catch (error) {
    print(`failed: ${(error as Error).stack ?? String(error)}`);
    await compose(at, 'ps', '--all').then(print, () => undefined);
    await compose(at, 'logs', '--tail', '15').then(print, () => undefined);
    process.exitCode = 1;
  } finally {
    await compose(at, '--profile', 'monitoring', 'down', '--volumes', '--remove-orphans').catch(() => undefined);
    for (const version of ['real-1', 'real-2']) {
      const images = [`sendwright:${version}`, `sendwright-simulator:${version}`];
      await run(at, 'docker', ['image', 'rm', '--force', ...images]).catch(() => undefined);
    }
    await rm(copy, { recursive: true, force: true });
  }
}

/** Copies the files of a fresh clone: no packages, no secrets, no build. */
async function copyProject(target: string): Promise<void> {
  const listed = await run({ folder: ROOT, env: process.env, project: '', print }, 'git', [
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
  ]);
  for (const name of new Set(listed.split('\0'))) {
    if (name !== '') await cp(join(ROOT, name), join(target, name));
  }
  await mkdir(join(target, 'secrets'), { recursive: true });
}

async function versions(at: steps.Installation): Promise<string> {
  const server = await run(at, 'docker', ['version', '--format', '{{.Server.Version}}']);
  const driver = await run(at, 'docker', ['info', '--format', '{{.Driver}}, {{.NCPU}} cores']);
  const version = await compose(at, 'version', '--short');
  return `Docker ${server.trim()} (${driver.trim()}), Compose ${version.trim()}`;
}
