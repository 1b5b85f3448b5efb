import { access, constants, cp, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import getPort from 'get-port';
import { createOnce, cacheFolder, exists } from './cache.ts';
import { CommandError, run } from './command.ts';
import { download } from './download.ts';
import { waitUntilListening } from './probe.ts';
import { Problem } from './problem.ts';
import { makeDeadline } from '../../src/lib/deadline.ts';
import type { Progress, Step } from './progress.ts';

/** Temporal's test server is part of its Java SDK; pom.xml pins the same version. */
const VERSION = '1.38.0';
/** The TypeScript SDK in package.json; its version determines the download. */
const SDK_VERSION = '1.24.0';
const POM = fileURLToPath(new URL('time-skipping-server/pom.xml', import.meta.url));
const MIN_JAVA_VERSION = 11;
const START_TIMEOUT_MS = 20_000;

/** The cached folder contains the program and, from Maven, its jars. */
const PROGRAM = 'temporal-test-server';
const JARS = 'jars';
const WRAPPER = `#!/bin/sh
# Starts quickly rather than runs fast: a test server lives for seconds.
jars=$(dirname "$0")/${JARS}
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -cp "$jars/*" io.temporal.testserver.TestServer "$@"
`;

/**
 * Returns the path of Temporal's time-skipping test server: from `TEMPORAL_TEST_SERVER_PATH` or the cache. Otherwise
 * downloads it to the cache, or gets it with Maven, to run on Java, if the download is not reachable.
 * @throws Problem that states what to install
 */
export async function findTimeSkippingServer(
  env: NodeJS.ProcessEnv,
  progress: Progress,
  signal?: AbortSignal,
): Promise<string> {
  const named = env['TEMPORAL_TEST_SERVER_PATH'];
  if (named) {
    await access(named, constants.X_OK).catch(() => {
      throw new Problem(`TEMPORAL_TEST_SERVER_PATH names no program that can be run: ${named}`);
    });
    return named;
  }
  const folder = join(cacheFolder(env), `time-skipping-server-${VERSION}-${process.platform}-${process.arch}`);
  if (!(await exists(folder))) {
    await progress.step(`Time-skipping server ${VERSION}`, async (step) => {
      const onWait = () => step.detail('another process is getting it; waiting for that');
      await createOnce(folder, (workspace) => obtain(workspace, step, signal), { signal, onWait });
    });
  }
  if (await exists(join(folder, JARS))) {
    await checkJava(signal).catch((error: unknown) => {
      throw new Problem(`${(error as Error).message}. ${ADVICE}`);
    });
  }
  return join(folder, PROGRAM);
}

const ADVICE = [
  'The tests need the time-skipping server. Any one of these helps:',
  `  - install Java ${MIN_JAVA_VERSION} or newer and Maven (Debian: apt-get install default-jre-headless maven; macOS: brew install maven)`,
  '  - name a time-skipping server that is there in TEMPORAL_TEST_SERVER_PATH',
].join('\n');

async function obtain(workspace: string, step: Step, signal: AbortSignal | undefined): Promise<string> {
  const made = join(workspace, 'made');
  const program = join(made, PROGRAM);
  await mkdir(made);
  const tried: string[] = [];
  try {
    step.detail('asking temporal.download');
    const query = { 'sdk-name': 'sdk-typescript', 'sdk-version': SDK_VERSION };
    const downloaded = await download({ name: PROGRAM, version: 'default', query }, workspace, step, signal);
    await requireStart(downloaded, signal);
    await rename(downloaded, program);
    step.rename('Time-skipping server, downloaded');
    return made;
  } catch (error) {
    signal?.throwIfAborted();
    tried.push(`Download from temporal.download: ${(error as Error).message}`);
  }
  try {
    await checkJava(signal);
    await mavenCopy(workspace, join(made, JARS), step, signal);
    await writeFile(program, WRAPPER, { mode: 0o755 });
    await requireStart(program, signal);
    step.rename(`Time-skipping server ${VERSION}, brought by Maven`);
    return made;
  } catch (error) {
    signal?.throwIfAborted();
    tried.push(`Maven: ${(error as Error).message}`);
  }
  throw new Problem([ADVICE, 'What was tried:', ...tried.map((line) => `  - ${line}`)].join('\n'));
}

/** Starts the server and ends it once it listens, since it has no flag such as `--version`. */
async function requireStart(program: string, signal: AbortSignal | undefined): Promise<void> {
  const port = await getPort();
  const enough = new AbortController();
  const deadline = makeDeadline(START_TIMEOUT_MS, [enough.signal, ...(signal ? [signal] : [])]);
  const running = run(program, [String(port)], { signal: deadline });
  const listening = waitUntilListening(port, enough.signal).then(() => enough.abort());
  await Promise.race([running, listening]).catch(() => undefined);
  const listened = enough.signal.aborted;
  enough.abort();
  await running.catch((error: unknown) => {
    if (!listened) throw error;
  });
  if (!listened) throw new Error(`${program} does not start`);
}

async function mavenCopy(
  workspace: string,
  destination: string,
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  await cp(POM, join(workspace, 'pom.xml'));
  step.detail('Maven fetches about 40 MB');
  try {
    await run(
      'mvn',
      ['-B', '-ntp', 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${destination}`],
      { cwd: workspace, signal, onLine: (line) => step.detail(line.replace(/^\[INFO\]\s*/, '')) },
    );
  } catch (error) {
    if (error instanceof CommandError && error.code === 'ENOENT') {
      throw new Error('Maven (mvn) is not installed', { cause: error });
    }
    throw error;
  }
}

async function checkJava(signal: AbortSignal | undefined): Promise<void> {
  const output = await run('java', ['-version'], { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw new Error('Java is not installed', { cause: error });
  });
  // Before version 9 the second number is the major version: 1.8.0.
  const version = /version "(?:1\.)?(\d+)/.exec(output)?.[1];
  if (Number(version) < MIN_JAVA_VERSION)
    throw new Error(`Java ${MIN_JAVA_VERSION} is needed and this is Java ${version ?? '?'}`);
}
