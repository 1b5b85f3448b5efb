import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import getPort from 'get-port';
import { createOnce, cacheFolder, exists } from '../../dev/environment/cache.ts';
import { run } from '../../dev/environment/command.ts';
import { checkGo } from '../../dev/environment/go-build.ts';
import { waitUntilListening } from '../../dev/environment/probe.ts';
import { Problem } from '../../dev/environment/problem.ts';
import type { Progress } from '../../dev/environment/progress.ts';
import { NO_PROGRESS } from '../faults/stack.ts';
import { endChild } from './end-child.ts';

/** Versity S3 Gateway (Apache-2.0): a real S3 server over a folder. Only tests need it. */
const VERSION = 'v1.8.0';
const PROGRAM = `github.com/versity/versitygw/cmd/versitygw@${VERSION}`;
const STARTS_WITHIN_MS = 120_000;

export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly stop: () => Promise<void>;
}

/**
 * The path of the S3 server's program. Go builds it once, in about a minute.
 * @throws Problem that names what to install without Go
 */
export async function findS3Server(progress: Pick<Progress, 'step'>): Promise<string> {
  const program = join(cacheFolder(process.env), `versitygw-${VERSION}-${process.platform}-${process.arch}`);
  if (!(await exists(program)))
    await progress.step('S3 server for tests, built from source', (step) =>
      createOnce(program, build, { onWait: () => step.detail('another process builds it') }),
    );
  return program;
}

/** Starts an S3 server with one bucket in an empty folder. test/run.ts builds its program. */
export async function startS3Server(folder: string): Promise<S3Server> {
  const program = await findS3Server(NO_PROGRESS);
  const bucket = 'sendwright-test';
  await mkdir(join(folder, bucket));
  const port = await getPort();
  const accessKeyId = 'test';
  const secretAccessKey = 'a secret for tests';
  const child = spawn(
    program,
    ['--access', accessKeyId, '--secret', secretAccessKey, '--port', `127.0.0.1:${port}`, '--quiet', 'posix', folder],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await waitUntilListening(port, AbortSignal.timeout(STARTS_WITHIN_MS));
  return {
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    accessKeyId,
    secretAccessKey,
    stop: () => endChild(child),
  };
}

async function build(workspace: string): Promise<string> {
  try {
    await checkGo(undefined);
  } catch (error) {
    throw new Problem(`The S3 tests build their server with Go (https://go.dev/dl): ${(error as Error).message}`, {
      cause: error,
    });
  }
  const env = { ...process.env, GOBIN: workspace, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '' };
  await run('go', ['install', '-trimpath', PROGRAM], { cwd: workspace, env });
  return join(workspace, 'versitygw');
}
