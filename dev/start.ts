import { once } from 'node:events';
import { tryDemo } from './environment/demo.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { writeJson } from './environment/atomic-file.ts';
import { devFileOf } from './environment/dev-file.ts';
import { endOrphans, type Home, lockHome, recordProcesses, removeRunFiles } from './environment/home.ts';
import { makeLatestWrite } from './environment/latest-write.ts';
import { trimLogs } from './environment/logs.ts';
import { makePorts } from './environment/ports.ts';
import { Problem } from './environment/problem.ts';
import { duration, makeProgress } from './environment/progress.ts';
import { type Stack, startStack } from './environment/stack.ts';
import { makeSupervisor, type Processes } from './environment/supervisor.ts';
import { addresses, demoStory } from './environment/welcome.ts';
import { readEnvironment, readSettings } from '../src/main/env.ts';

/** `npm start`: runs the whole service on this machine, for development, until Ctrl-C. */
const PARENT_POLL_INTERVAL_MS = 500;
const began = Date.now();
const environment = readEnvironment();
const config = readSettings();
const progress = makeProgress(process.stdout);
const stopping = new AbortController();
let stopReason = '';
let failure: unknown;

function stop(why: string): void {
  stopReason ||= why;
  stopping.abort();
}

// Ctrl-C may arrive twice, from the terminal and from npm, and may be pressed again.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
// A killed npm cannot forward Ctrl-C, so the end of npm's process is detected by polling.
if (environment['npm_lifecycle_event'] !== undefined) {
  const npm = process.ppid;
  setInterval(() => {
    if (process.ppid !== npm) stop('npm has ended');
  }, PARENT_POLL_INTERVAL_MS).unref();
}
// Ignores errors of a terminal that was closed before this process ends.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error) => {
    if (!stopping.signal.aborted) failure ??= error ?? new Error(event);
    stop(event);
  });
}

try {
  const { home, release } = await lockHome(config.SENDWRIGHT_HOME);
  await runIn(home).finally(release);
} catch (error) {
  failure ??= error;
}
if (failure !== undefined) console.error(failure instanceof Problem ? failure.message : failure);
process.exit(failure === undefined ? 0 : 1);

/** Starts all parts, prints their addresses, and stops them on a signal. */
async function runIn(home: Home): Promise<void> {
  let stack: Stack | undefined;
  let processes: Processes = {};
  const record = makeLatestWrite((current: Processes) => recordProcesses(home, current));
  const devFile = makeLatestWrite((current: DevFile) => writeJson(home.devFile, current));
  const supervisor = makeSupervisor(progress, (current) => {
    processes = current;
    record.write(processes);
    if (stack) devFile.write(devFileOf(stack, processes));
  });
  const ports = makePorts();
  const stopTrimming = trimLogs(home.logs);
  // A stop signal also ends parts that are still starting.
  stopping.signal.addEventListener('abort', () => void supervisor.stop());
  try {
    const orphans = await endOrphans(home);
    if (orphans.length > 0) progress.print(`  Ended what an earlier start left behind: ${orphans.join(', ')}`);
    const { signal } = stopping;
    const started = await startStack({ config, environment, home, ports, progress, supervisor, signal }).finally(
      ports.release,
    );
    const { baseUrl, demo, inboxUrl } = started;
    const email = inboxUrl === null ? undefined : await tryDemo({ progress, signal }, baseUrl, demo);
    stack = started;
    await writeJson(home.settings, stack.settings);
    devFile.write(devFileOf(stack, processes));
    await devFile.settled();
    const lines = [...(email ? demoStory(email) : []), ...addresses(stack, home, email)];
    progress.print([...lines, `Everything answers after ${duration(Date.now() - began)}. Ctrl-C stops it.`].join('\n'));
    if (!signal.aborted) await once(signal, 'abort');
  } catch (error) {
    // Errors caused by stopping are not reported.
    if (!stopping.signal.aborted) throw error;
  } finally {
    const since = Date.now();
    progress.print(stopReason ? `\nStopping (${stopReason})` : '\nStopping');
    await supervisor.stop();
    stopTrimming();
    await Promise.allSettled([record.settled(), devFile.settled()]);
    await removeRunFiles(home);
    progress.print(`Stopped in ${duration(Date.now() - since)}; the data stays in ${home.path}`);
  }
}
