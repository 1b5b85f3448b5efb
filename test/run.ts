import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SETTINGS } from '../src/settings.ts';
import { Problem } from '../dev/environment/problem.ts';
import { killGroup } from '../dev/environment/processes.ts';
import { duration, makeProgress } from '../dev/environment/progress.ts';
import { findChromium } from './support/chromium.ts';
import { compiled } from './support/compiled.ts';
import { ROOT } from './support/root.ts';
import { findS3Server } from './support/s3-server.ts';
import { END_TO_END, type Selection, testFiles } from './support/selection.ts';
import { startServers } from './support/servers.ts';

/**
 * `npm test [-- --quick | --services] [files and flags of node --test]`: starts the servers that tests need, runs test files,
 * and stops the servers. Files under test/e2e/ and test/browser/ start the whole service, some of them several times, and take
 * most of the time of all tests: `--services` runs them. Without it, all others are run, with `--quick` the quick ones.
 */

const IN_BROWSER = /^test\/browser\//;
const IN_S3 = 'test/store/files/s3.test.ts';
/** Milliseconds after which a file is taken to hang. It is no limit of speed: the machine may be busy. */
const HANG_MS = 1_800_000;
/** Files wait for something half of their time. */
const CONCURRENCY = 2 * availableParallelism();
/** Each file that starts the whole service has at least half a dozen processes. */
const SERVICES_CONCURRENCY = availableParallelism();
/** A test of `npm start` takes up to ten seconds to stop it when it gets SIGTERM. */
const STOPS_WITHIN = 12_000;

const began = Date.now();
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopping.abort());
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const given = process.argv.slice(2);
const SELECTIONS: Readonly<Record<string, Selection>> = { '--quick': 'quick', '--services': 'services' };
const selection = given.map((argument) => SELECTIONS[argument]).find((name) => name !== undefined) ?? 'usual';
const flags = given.filter((argument) => argument.startsWith('-') && !(argument in SELECTIONS));
const files = given.filter((argument) => !argument.startsWith('-')).map((file) => file.replace(/^\.\//, ''));

process.exitCode = await main().catch((error: unknown) => {
  if (!stopping.signal.aborted) console.error(error instanceof Problem ? error.message : error);
  return 1;
});
console.log(`\nTests took ${duration(Date.now() - began)}`);
process.exit();

async function main(): Promise<number> {
  const progress = makeProgress(process.stdout);
  const servers = await startServers(process.env, progress, stopping.signal);
  try {
    const environment = { ...withoutSettings(process.env), ...servers.environment };
    const all = files.length > 0 ? files : await testFiles(selection);
    // Those tests look for it too, and fail with what to install; here it may be fetched in its own time.
    if (all.some((file) => IN_BROWSER.test(file)))
      await findChromium(process.env, progress, stopping.signal).catch(say);
    if (all.includes(IN_S3)) await findS3Server(progress);
    const starts = all.filter((file) => END_TO_END.test(file));
    const others = all.filter((file) => !END_TO_END.test(file));
    const ends = [
      await runFiles(others, CONCURRENCY, environment),
      await runFiles(starts, SERVICES_CONCURRENCY, environment),
    ];
    const failures = ends.map((end) => end.failures).join('');
    if (failures !== '') console.log(`\nWhat failed:\n\n${failures.trimEnd()}`);
    return ends.find(({ code }) => code !== 0)?.code ?? 0;
  } finally {
    await servers.stop();
  }
}

function say(error: unknown): void {
  stopping.signal.throwIfAborted();
  if (!(error instanceof Problem)) throw error;
  console.error(error.message);
}

/** Tests set what they need; settings of another Sendwright in the shell must not affect them. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !(name in SETTINGS) && !name.startsWith('TEMPORAL_')),
  );
}

/** How a run of test files ended. */
interface End {
  /** The exit code; 0 without files. */
  readonly code: number;
  /** The texts of its failures; empty without any. */
  readonly failures: string;
}

async function runFiles(paths: string[], concurrency: number, environment: NodeJS.ProcessEnv): Promise<End> {
  if (paths.length === 0) return { code: 0, failures: '' };
  stopping.signal.throwIfAborted();
  const folder = String(environment['TEST_COMPILED']);
  const programs = paths.map((path) => join(folder, compiled(path)));
  const failures = join(folder, 'failures.txt');
  const options = [
    ...[`--test-concurrency=${concurrency}`, `--test-timeout=${HANG_MS}`],
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...[`--test-reporter=${join(folder, 'test/support/failures.mjs')}`, `--test-reporter-destination=${failures}`],
  ];
  // A process group of its own: Ctrl-C reaches only this process, which then signals everything that the tests have started.
  const child = spawn(process.execPath, ['--enable-source-maps', '--test', ...options, ...flags, ...programs], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  const interrupt = () => signalGroup(child, 'SIGINT');
  stopping.signal.addEventListener('abort', interrupt, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  stopping.signal.removeEventListener('abort', interrupt);
  await endGroup(child);
  return { code: code ?? 1, failures: await readFile(failures, 'utf8').catch(() => '') };
}

/** Waits until all that the tests have started has ended, as long as it may take when interrupted, else ends it. */
async function endGroup(child: ChildProcess): Promise<void> {
  const until = Date.now() + (stopping.signal.aborted ? STOPS_WITHIN : 1_000);
  while (signalGroup(child, 0) && Date.now() < until) await sleep(50);
  if (child.pid !== undefined) killGroup(child.pid);
}

/** @returns true if the group has any process */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return child.pid !== undefined && process.kill(-child.pid, signal);
  } catch {
    return false;
  }
}
