import { delimiter, join } from 'node:path';
import { createOnce, cacheFolder, exists } from './cache.ts';
import { run } from './command.ts';
import { download } from './download.ts';
import { checkGo, goBuild, isAtLeast, neededGo } from './go-build.ts';
import { Problem } from './problem.ts';
import type { Progress, Step } from './progress.ts';

/** Temporal CLI: its dev server is Temporal 1.31.2 with the web UI. go.mod pins the same version. */
const VERSION = '1.8.2';
/** Older versions lack flags that we use. */
const MIN_VERSION = '1.8.0';
const CLI_PACKAGE = 'github.com/temporalio/cli/cmd/temporal';
const VERSION_VARIABLE = 'github.com/temporalio/cli/internal/temporalcli.Version';

/**
 * Returns the path of a Temporal CLI: from `TEMPORAL_CLI_PATH`, PATH or the cache. Otherwise downloads it to the cache, or
 * builds it with Go if the download is not reachable.
 * @throws Problem that states what to install
 */
export async function findTemporalCli(
  env: NodeJS.ProcessEnv,
  progress: Progress,
  signal?: AbortSignal,
): Promise<string> {
  const named = env['TEMPORAL_CLI_PATH'];
  if (named) {
    const version = await versionOf(named, signal).catch((error: unknown) => error as Error);
    if (version instanceof Error) throw new Problem(`TEMPORAL_CLI_PATH names no Temporal CLI: ${version.message}`);
    progress.print(`  Temporal CLI ${version}: the one that TEMPORAL_CLI_PATH names`);
    return named;
  }
  return (await onPath(env, progress, signal)) ?? (await inCache(env, progress, signal));
}

async function onPath(
  env: NodeJS.ProcessEnv,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, 'temporal');
    if (!folder || !(await exists(path))) continue;
    const version = await versionOf(path, signal).catch(() => undefined);
    if (version === undefined) continue;
    if (isAtLeast(version, MIN_VERSION)) {
      progress.print(`  Temporal CLI ${version}: found on PATH (${path})`);
      return path;
    }
    progress.print(`  Temporal CLI ${version} on PATH is older than ${MIN_VERSION} and not used (${path})`);
  }
  return undefined;
}

async function inCache(env: NodeJS.ProcessEnv, progress: Progress, signal: AbortSignal | undefined): Promise<string> {
  const path = join(cacheFolder(env), `temporal-cli-${VERSION}-${process.platform}-${process.arch}`);
  if (await exists(path)) return path;
  await progress.step(`Temporal CLI ${VERSION}`, async (step) => {
    const onWait = () => step.detail('another process is getting it; waiting for that');
    await createOnce(path, (workspace) => obtain(workspace, step, progress, signal), { signal, onWait });
  });
  return path;
}

async function obtain(
  workspace: string,
  step: Step,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<string> {
  const tried: string[] = [];
  try {
    step.detail('asking temporal.download');
    const artifact = { name: 'cli', version: `v${VERSION}`, query: { format: 'tar.gz' } } as const;
    const program = await download(artifact, workspace, step, signal);
    await versionOf(program, signal);
    step.rename(`Temporal CLI ${VERSION}, downloaded`);
    return program;
  } catch (error) {
    signal?.throwIfAborted();
    tried.push(`Download from temporal.download: ${(error as Error).message}`);
  }
  try {
    await checkGo(signal);
    progress.print(`  ${tried[0] ?? ''}; so Go builds the Temporal CLI: about 3 minutes on 2 cores, once`);
    step.rename(`Temporal CLI ${VERSION}, built from source`);
    step.detail('');
    const program = join(workspace, 'temporal');
    await goBuild(CLI_PACKAGE, `-X ${VERSION_VARIABLE}=${VERSION}`, program, step, signal);
    await versionOf(program, signal);
    return program;
  } catch (error) {
    signal?.throwIfAborted();
    tried.push(`Build from source: ${(error as Error).message}`);
  }
  throw new Problem(
    [
      'There is no Temporal server, and none could be made. Any one of these helps:',
      `  - install the Temporal CLI, ${MIN_VERSION} or newer (https://docs.temporal.io/cli), or name it in TEMPORAL_CLI_PATH`,
      `  - install Go, ${await neededGo()} or newer (https://go.dev/dl), and start again: it is built from source then`,
      '  - for `npm start`: set TEMPORAL_ADDRESS to a Temporal server that runs somewhere',
      'What was tried:',
      ...tried.map((line) => `  - ${line}`),
    ].join('\n'),
  );
}

/** Returns the version. Also proves that the program runs on this machine. */
async function versionOf(path: string, signal: AbortSignal | undefined): Promise<string> {
  const output = await run(path, ['--version'], { signal });
  const version = /version v?(\d+\.\d+\.\d+\S*)/.exec(output)?.[1];
  if (version === undefined) throw new Error(`${path} --version says ${output.slice(0, 100)}`);
  return version;
}
