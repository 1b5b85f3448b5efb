import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { TestContext } from 'node:test';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { SMTPServer } from 'smtp-server';
import { startRelay } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import { open } from '../providers/servers.ts';
import { testDatabase } from '../support/database.ts';
import { endChild } from '../support/end-child.ts';
import { programPath } from '../support/program.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { testNamespace } from '../support/temporal.ts';
import { WITHOUT_ENV_FILE } from '../support/without-env-file.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';

const RETRY = { maximumAttempts: 16, initialInterval: 1_000, maximumInterval: 5_000 };

/** The requests to a sink, with the number of their emails and their size. */
export type Requests = { readonly emails: number; readonly bytes: number }[];

/** Accepts every request to Postmark and stores nothing. @param delayMs until it answers */
export async function postmarkSink(t: TestContext, delayMs = 0): Promise<{ url: string; requests: Requests }> {
  const requests: Requests = [];
  const server = createServer((request, response) => {
    let bytes = 0;
    let emails = 0;
    let rest = '';
    request.setEncoding('latin1').on('data', (chunk: string) => {
      bytes += chunk.length;
      const text = rest + chunk;
      emails += text.split(MARK).length - 1;
      rest = text.slice(-(MARK.length - 1));
    });
    request.once('end', () => {
      requests.push({ emails, bytes });
      const answers = Array.from({ length: emails }, (_, i) => ({
        ErrorCode: 0,
        MessageID: `${requests.length} ${i}`,
      }));
      const body = request.url?.endsWith('/batch') ? answers : (answers[0] ?? { TotalCount: 0, Messages: [] });
      setTimeout(() => response.end(JSON.stringify(body)), delayMs);
    });
  });
  return { url: `http://127.0.0.1:${await open(t, server)}`, requests };
}
const MARK = '"MessageStream":';

/** Accepts every email by SMTP and stores nothing. */
export async function smtpSink(t: TestContext): Promise<{ url: string; requests: Requests }> {
  const requests: Requests = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
      stream.once('end', () => {
        requests.push({ emails: 1, bytes });
        done();
      });
    },
  });
  const port = await open(t, server.server);
  return { url: `smtp://127.0.0.1:${port}`, requests };
}

/** An email worker in its own process, with a database, a Temporal namespace and a workflow worker in this one. */
export async function startWorkerProcess(
  t: TestContext,
  env: NodeJS.ProcessEnv,
  { heapMb, startsPerSecond }: { heapMb: number; startsPerSecond: number },
) {
  silenceTemporal();
  const log = pino({ level: 'silent' });
  const database = await testDatabase(10);
  const temporal = await testNamespace();
  const { connection, namespace, client } = temporal;
  const workflows = await Worker.create({
    connection,
    namespace,
    taskQueue: 'messages',
    workflowBundle: await workflowBundle(),
  });
  const running = workflows.run();
  const forkWorker = (): ChildProcess =>
    fork(programPath('worker'), ['--fleets', 'email'], {
      cwd: WITHOUT_ENV_FILE,
      execArgv: [`--max-old-space-size=${heapMb}`],
      env: {
        ...process.env,
        DATABASE_URL: database.url,
        SECRET_KEY,
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: namespace,
        LOG_LEVEL: 'error',
        PUBLIC_URL: 'https://mail.example',
        ...env,
      },
    });
  let peakMb = 0;
  let ended: string | undefined;
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    ended = undefined;
    child = forkWorker();
    child.once('exit', (code, signal) => (ended = `the worker ended with ${signal ?? `exit code ${code}`}`));
    await once(child, 'message');
    // Without the memory that loading the program took.
    await writeFile(`/proc/${child.pid}/clear_refs`, '5').catch(() => undefined);
    peakMb = 0;
  };
  const residentMb = async (): Promise<number> => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    const [, kilobytes = '0'] = /VmHWM:\s+(\d+)/.exec(status) ?? [];
    return Number(kilobytes) / 1_024;
  };
  await start();
  const sampling = setInterval(() => void residentMb().then((mb) => (peakMb = Math.max(peakMb, mb))), 100);
  const relay = { current: undefined as ReturnType<typeof startRelay> | undefined };
  t.after(async () => {
    clearInterval(sampling);
    await relay.current?.stop();
    await endChild(child);
    workflows.shutdown();
    await running;
    await temporal.close();
    await database.drop();
  });
  return {
    pool: database.pool,
    /** Begins to dispatch: emails that were accepted before share workflows. */
    startRelay: () => {
      relay.current = startRelay({
        pool: database.pool,
        log,
        dispatch: makeTemporalDispatcher(client, RETRY),
        startsPerSecond,
      });
    },
    /** Kills the worker and starts another. */
    restart: async (): Promise<void> => {
      await endChild(child);
      await start();
    },
    /** How the worker ended; undefined while it runs. */
    ended: () => ended,
    /** The peak memory of the worker since it was ready. */
    peakMb: () => peakMb,
  };
}
