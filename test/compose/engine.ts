import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A container engine for this run in a separate network namespace. */
export interface PrivateEngine {
  /** For the environment of `docker`. */
  readonly host: string;
  readonly namespace: string;
  readonly stop: () => Promise<void>;
}

/** The address pairs between this machine and the namespace. */
const [OUTER, INNER, PAIR] = ['10.213.0.1', '10.213.0.2', '10.213.0.0/30'];
/** The engine's networks, away from ranges that a machine may use itself. */
const POOL = '10.214.0.0/16';
/** Contains 1 if this machine forwards packets between its networks. The run sets and restores it. */
const FORWARDING = '/proc/sys/net/ipv4/ip_forward';
const STARTS_WITHIN_MS = 120_000;
const ENDS_WITHIN_MS = 60_000;

/** Returns true if `docker` reaches an engine with the settings of this shell. */
export async function hasEngine(): Promise<boolean> {
  return run('docker', ['info', '--format', '{{.ServerVersion}}']).then(
    ({ stdout }) => stdout.trim() !== '',
    () => false,
  );
}

/** The reason why this machine cannot start a private engine, or undefined. */
export function privateEngineProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const missing = ['dockerd', 'docker', 'iptables', 'ip', 'nsenter', 'sysctl'].filter(
    (program) => !isInstalled(program),
  );
  return missing.length > 0 ? `not installed: ${missing.join(', ')}` : undefined;
}

export function isInstalled(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts `dockerd` with everything it keeps below a folder.
 * @param store `containerd` for images in containerd, the default of new installations; `overlay2` for the older store
 */
export async function startEngine(folder: string, store: string): Promise<PrivateEngine> {
  const namespace = 'sendwright-compose';
  const forwarding = await readFile(FORWARDING, 'utf8');
  await removeNetwork(namespace);
  await addNetwork(namespace);
  await mkdir(folder, { recursive: true });
  const host = `unix://${join(folder, 'docker.sock')}`;
  const config = join(folder, 'daemon.json');
  await writeFile(config, JSON.stringify({ features: { 'containerd-snapshotter': store === 'containerd' } }));
  const log = join(folder, 'dockerd.log');
  const output = openSync(log, 'w');
  const daemon = spawn(
    'nsenter',
    [
      ...[`--net=/run/netns/${namespace}`, 'dockerd', '--config-file', config, '--host', host],
      ...['--data-root', join(folder, store), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid')],
      ...['--default-address-pool', `base=${POOL},size=24`],
    ],
    // Its own process group: Ctrl-C ends this run first, which then ends the engine.
    { stdio: ['ignore', output, output], detached: true },
  );
  const until = Date.now() + STARTS_WITHIN_MS;
  while (!(await answers(host))) {
    if (daemon.exitCode !== null || Date.now() > until) {
      await end(daemon);
      await removeNetwork(namespace);
      throw new Error(`dockerd did not start; its last lines:\n${(await readFile(log, 'utf8')).slice(-3_000)}`);
    }
    await sleep(500);
  }
  return {
    host,
    namespace,
    async stop() {
      await end(daemon);
      await removeNetwork(namespace);
      await writeFile(FORWARDING, forwarding);
      await rm(join(folder, 'docker.sock'), { force: true });
    },
  };
}

async function answers(host: string): Promise<boolean> {
  return run('docker', ['--host', host, 'version']).then(
    () => true,
    () => false,
  );
}

async function end(daemon: ChildProcess): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  daemon.kill('SIGTERM');
  await Promise.race([ended, sleep(ENDS_WITHIN_MS, undefined, { ref: false })]);
  daemon.kill('SIGKILL');
}

const RULES = [
  ['nat', 'POSTROUTING', '-s', PAIR, '-j', 'MASQUERADE'],
  ['filter', 'FORWARD', '-i', 'sendwright0', '-j', 'ACCEPT'],
  ['filter', 'FORWARD', '-o', 'sendwright0', '-j', 'ACCEPT'],
] as const;

async function addNetwork(namespace: string): Promise<void> {
  const inside = (...args: string[]) => run('nsenter', [`--net=/run/netns/${namespace}`, ...args]);
  await run('ip', ['netns', 'add', namespace]);
  await run('ip', ['link', 'add', 'sendwright0', 'type', 'veth', 'peer', 'name', 'sendwright1']);
  await run('ip', ['link', 'set', 'sendwright1', 'netns', namespace]);
  await run('ip', ['addr', 'add', `${OUTER}/30`, 'dev', 'sendwright0']);
  await run('ip', ['link', 'set', 'sendwright0', 'up']);
  await inside('ip', 'addr', 'add', `${INNER}/30`, 'dev', 'sendwright1');
  await inside('ip', 'link', 'set', 'sendwright1', 'up');
  await inside('ip', 'link', 'set', 'lo', 'up');
  await inside('ip', 'route', 'add', 'default', 'via', OUTER);
  await inside('sysctl', '-q', 'net.ipv4.ip_forward=1');
  await writeFile(FORWARDING, '1');
  for (const [table, chain, ...rule] of RULES) await run('iptables', ['-t', table, '-I', chain, ...rule]);
}

/** Also removes the network of a killed run. */
async function removeNetwork(namespace: string): Promise<void> {
  for (const [table, chain, ...rule] of RULES) {
    await run('iptables', ['-t', table, '-D', chain, ...rule]).catch(() => undefined);
  }
  await run('ip', ['link', 'delete', 'sendwright0']).catch(() => undefined);
  await run('ip', ['netns', 'delete', namespace]).catch(() => undefined);
}
