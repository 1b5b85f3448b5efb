import { createWriteStream } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch, type Dispatcher } from 'undici';
import { run } from './command.ts';
import { makeDeadline } from '../../src/lib/deadline.ts';
import type { Step } from './progress.ts';

/** A file of temporal.download: https://github.com/temporalio/cli#install-via-download and the SDKs' own downloads. */
interface Artifact {
  readonly name: 'cli' | 'temporal-test-server';
  readonly version: string;
  /** Query parameters besides platform and architecture. */
  readonly query?: Record<string, string>;
}

const ORIGIN = 'https://temporal.download';
/** Short, since there is an alternative to an unreachable host. */
const FIRST_ANSWER_TIMEOUT_MS = 3_000;
const STALL_TIMEOUT_MS = 20_000;
const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { linux: 'linux', darwin: 'darwin' };
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Downloads the archive of a server and extracts its single program.
 * @param folder an empty working folder
 * @returns the program's path inside `folder`
 * @throws Error with the reason; after 3 s without a response
 */
export async function download(
  artifact: Artifact,
  folder: string,
  step: Step,
  signal: AbortSignal | undefined,
  origin = ORIGIN,
): Promise<string> {
  const platform = PLATFORMS[process.platform];
  const arch = ARCHITECTURES[process.arch];
  if (!platform || !arch) throw new Error(`there is none for ${process.platform} on ${process.arch}`);
  const dispatcher = new EnvHttpProxyAgent({ connectTimeout: FIRST_ANSWER_TIMEOUT_MS, bodyTimeout: STALL_TIMEOUT_MS });
  try {
    const query = new URLSearchParams({ platform, arch, ...artifact.query });
    const url = `${origin}/${artifact.name}/${artifact.version}?${query.toString()}`;
    const { archiveUrl, fileToExtract } = await describe(url, dispatcher, signal);
    const archive = join(folder, 'archive.tar.gz');
    const unpacked = join(folder, 'unpacked');
    await fetchTo(archive, archiveUrl, dispatcher, step, signal);
    step.detail('unpacking');
    await mkdir(unpacked);
    await run('tar', ['-xzf', archive, '-C', unpacked], { signal });
    const program = join(folder, 'program');
    await rename(join(unpacked, fileToExtract), program);
    return program;
  } catch (error) {
    throw new Error(reason(error), { cause: error });
  } finally {
    await dispatcher.close();
  }
}

async function describe(
  url: string,
  dispatcher: Dispatcher,
  signal: AbortSignal | undefined,
): Promise<{ archiveUrl: string; fileToExtract: string }> {
  const deadline = makeDeadline(FIRST_ANSWER_TIMEOUT_MS, signal ? [signal] : []);
  const response = await fetch(url, { dispatcher, signal: deadline });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as { archiveUrl: string; fileToExtract: string };
}

async function fetchTo(
  file: string,
  url: string,
  dispatcher: Dispatcher,
  step: Step,
  signal: AbortSignal | undefined,
): Promise<void> {
  const response = await fetch(url, { dispatcher, signal: signal ?? null });
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const total = Number(response.headers.get('content-length') ?? 0);
  let received = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      step.detail(`${megabytes(received)}${total > 0 ? ` of ${megabytes(total)}` : ''} MB`);
      done(null, chunk);
    },
  });
  await pipeline(Readable.fromWeb(response.body), counter, createWriteStream(file), { signal });
}

function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(1);
}

/**
 * Returns the message of the innermost cause, which is the most specific: `getaddrinfo ENOTFOUND …` instead of `fetch
 * failed`.
 */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${FIRST_ANSWER_TIMEOUT_MS / 1_000} s`;
  return error.cause instanceof Error ? reason(error.cause) : error.message;
}
