import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from '@temporalio/client';
import { type ActivityInterceptors, Worker, type WorkerOptions } from '@temporalio/worker';
import {
  makeMessageActivities,
  makeEmailActivities,
  makeGroupActivities,
  makeMessageGroupActivities,
  makeUpkeepActivities,
} from '../../activities/index.ts';
import type { MessageDeps } from '../delivery/messages/contract.ts';
import { makeMigrationCheck } from '../http/plugins/readiness.ts';
import { makeMessagePace } from '../delivery/messages/pace.ts';
import { makeProviderLine } from '../delivery/line.ts';
import { startWebhookDispatcher } from '../delivery/webhooks/dispatcher.ts';
import { webhookSeal } from '../accounts/webhooks.ts';
import { startDomainChecks } from '../sender-domains/background-checks.ts';
import { startIndexingEmails } from '../upkeep/search-index.ts';
import { makePublicPost } from '../public-fetch/post.ts';
import { makeEmailContents } from '../store/emails/contents.ts';
import { listenToOutbox, makeNotifier } from '../store/postgres/wake.ts';
import { checkAttachmentStore, openAttachmentStore } from './wiring/attachment-store.ts';
import { checkDatabase, openPool } from './wiring/database.ts';
import { openRecorder } from './wiring/recorder.ts';
import { makeChatProviders, twilioCallbacksUrl } from './wiring/chat-providers.ts';
import { openWorkflows } from './wiring/workflows.ts';
import { makeEmailDeps, retrySettings } from './wiring/email-deps.ts';
import { lookUpOf, makeAskPostmark, makeRemoveFromProvider, updateCredentialPauses } from './wiring/email-providers.ts';
import { secretKeysOf } from '../lib/secret-key.ts';
import { readSettings } from './env.ts';
import { forkIsolated, makeIsolation } from './isolation.ts';
import { openMetrics, serveMetrics } from './wiring/metrics.ts';
import { exitWith, makeLog, notifyReady, stopOnSignals, warnOfWeakSecretKey } from './process.ts';
import { makeSenderDomains } from './wiring/sender-domains.ts';
import { keepSchedules } from './wiring/schedules.ts';
import {
  connectToTemporal,
  ensureSearchAttributes,
  installTemporal,
  installWithMetrics,
  readTemporalSettings,
} from './wiring/temporal.ts';
import { traceActivities, openTracer } from './wiring/tracing.ts';
import { startWatchdog } from './watchdog.ts';

type QueueOptions = WorkerOptions & { taskQueue: string };

/** Maximum number of concurrent first attempts per channel in a worker. */
const FIRST_ATTEMPTS = 100;

/**
 * The worker process, which runs any set of fleets. A fleet serves the task queue of its name and related ones, or polls
 * Postgres.
 */
const config = readSettings('DATABASE_URL', 'SECRET_KEY');
const log = makeLog('worker', config.LOG_LEVEL);
startWatchdog('worker');
const tracer = await openTracer(config, 'sendwright-worker', log);
const pool = openPool(config, log, 'worker', 20);
const { recorder, stop: stopRecorder } = openRecorder(config, log, 'worker results', 4);
const line = makeProviderLine();
void checkDatabase(pool, log);

const files = await openAttachmentStore(config);
warnOfWeakSecretKey(config.SECRET_KEY, log);
const secretKeys = secretKeysOf(config);
const senderDomains = makeSenderDomains(config, pool, secretKeys, log);

const ending = new AbortController();
const notify = makeNotifier(pool);
const isolation = makeIsolation(forkIsolated, log);

/** Set before the first activity runs. */
let client: Client | undefined;
/** Functions that stop the fleets that poll Postgres. */
const stopPolling: (() => Promise<unknown>)[] = [];

const FLEETS = {
  /**
   * Workflows of groups and upkeep. Their tasks are short and CPU-bound: more concurrent tasks would only wait for each
   * other, on a busy host possibly longer than the 10 s after which Temporal retries them.
   */
  messages: (): QueueOptions[] => [{ taskQueue: 'messages', ...workflows(40) }],
  email: (): QueueOptions[] => emailQueues('email', 'email-bursts', 'email-groups'),
  /**
   * The two parts of `email`. Separate processes keep single emails from waiting for the event loop of a process that sends
   * groups.
   */
  'email-single': (): QueueOptions[] => emailQueues('email', 'email-bursts'),
  'email-groups': (): QueueOptions[] => emailQueues('email-groups'),
  /** Workflows of chat-app messages and SMS, and calls to their providers. */
  chat: (): QueueOptions[] => chatQueues(),
  /** Posts to customers' endpoints. Does not need Temporal. */
  webhooks: (): QueueOptions[] => {
    const dispatcher = startWebhookDispatcher({
      pool,
      seal: webhookSeal(secretKeys),
      connectToEndpoint: makePublicPost({ allowedCidrs: config.WEBHOOK_ALLOW_CIDRS ?? [] }),
      idleTimeoutMs: 2_000,
      stopping: ending.signal,
      log,
    });
    const stopListening = listenToOutbox(config.DATABASE_URL, 'webhooks', dispatcher.wake);
    stopPolling.push(dispatcher.stop, stopListening);
    return [];
  },
  /** Scheduled maintenance tasks, and domain checks and the search index, which do not need Temporal. */
  upkeep: (): QueueOptions[] => {
    stopPolling.push(
      startDomainChecks(senderDomains),
      startIndexingEmails(pool, (error) => log.warn({ err: error }, 'could not index emails for search')),
    );
    return [
      {
        taskQueue: 'upkeep',
        activities: makeUpkeepActivities({
          pool,
          files,
          contents: makeEmailContents(secretKeys),
          bodyRetentionDays: config.BODY_RETENTION_DAYS,
          emailRetentionDays: config.EMAIL_RETENTION_DAYS,
          requestLogDays: config.REQUEST_LOG_DAYS,
          askPostmark: makeAskPostmark(config),
          removeFromProvider: makeRemoveFromProvider(config),
          removeFromPostmark: senderDomains.postmark?.remove,
          providerOf: makeChatProviders(pool, config, log),
          workflows: openWorkflows(() => client as Client),
          lookUp: lookUpOf(config),
          log,
        }),
        maxConcurrentActivityTaskExecutions: 4,
      },
    ];
  },
};
type Fleet = keyof typeof FLEETS;
const EMAIL_PARTS: readonly Fleet[] = ['email-single', 'email-groups'];

const fleets = readFleets();
// Other fleets need no files and may run without access to the store.
if (fleets.some((fleet) => fleet === 'upkeep' || fleet.startsWith('email'))) checkAttachmentStore(files, log);
const queues = fleets.flatMap((fleet) => FLEETS[fleet]());
const sdk = config.METRICS_PORT === undefined ? undefined : await installWithMetrics(log);
if (sdk === undefined) installTemporal(log);
let workers: Worker[] = [];
const stopMetrics = await startMetricsServer();
// Begins after the handlers of signals exist: the connection is made by another thread, so a signal may follow it immediately.
const running = Promise.resolve().then(run);
stopOnSignals(log, config.SHUTDOWN_TIMEOUT, async () => {
  ending.abort();
  shutDownWorkers();
  await Promise.all([running, ...stopPolling.map((stop) => stop())]);
  await line.end();
  isolation.stop();
  await Promise.all([pool.end(), stopRecorder(), tracer?.stop(), stopMetrics?.()]);
});
await running;

async function run(): Promise<void> {
  if (queues.length === 0) {
    notifyReady();
    return;
  }
  const settings = readTemporalSettings();
  const connection = await connectToTemporal(settings, log, ending.signal).catch((error: unknown) => {
    // The process was stopped before Temporal was reachable.
    if (!ending.signal.aborted) throw error;
  });
  if (!connection) return;
  const { namespace } = settings;
  client = new Client({ connection, namespace });
  workers = await Promise.all(
    queues.map((queue) =>
      Worker.create({
        connection,
        namespace,
        shutdownGraceTime: Math.max(1_000, config.SHUTDOWN_TIMEOUT - 5_000),
        ...queue,
        interceptors: { ...queue.interceptors, activity: [...(tracer ? [traceActivities(tracer)] : []), notifyRelay] },
      }),
    ),
  );
  const runs = workers.map((worker) => worker.run());
  // The process was stopped while the workers were created. Only running workers can be shut down.
  if (ending.signal.aborted) {
    shutDownWorkers();
    await Promise.all(runs);
    return connection.close();
  }
  const stopSchedules = queues.some(({ taskQueue }) => taskQueue === 'upkeep')
    ? keepSchedules({
        client,
        pool,
        ensureSearchAttributes: () => ensureSearchAttributes(connection, namespace, log),
        log,
      })
    : undefined;
  notifyReady();
  await Promise.all(runs);
  await stopSchedules?.();
  await connection.close();
}

function shutDownWorkers(): void {
  for (const worker of workers) worker.shutdown();
}

/** @returns a function that stops the server; undefined without METRICS_PORT */
async function startMetricsServer(): Promise<(() => Promise<void>) | undefined> {
  const { METRICS_PORT: port, HOST: host } = config;
  if (port === undefined || sdk === undefined) return undefined;
  const metrics = openMetrics({ pool, readLine: line.counts, sdk });
  const missingMigrations = makeMigrationCheck(pool);
  const isReady = async () =>
    workers.length === queues.length &&
    workers.every((worker) => worker.getState() === 'RUNNING') &&
    (await missingMigrations()).length === 0;
  return serveMetrics(metrics, { port, host }, isReady).catch((error: unknown) =>
    exitWith(`METRICS_PORT ${port} cannot be used: ${(error as Error).message}`),
  );
}

/** Returns the interceptor that notifies the relay in the API process, since activities may have added outbox rows. */
function notifyRelay(): ActivityInterceptors {
  return {
    inbound: {
      async execute(input, next) {
        try {
          return await next(input);
        } finally {
          notify();
        }
      },
    },
  };
}

/** Logs a warning if Twilio cannot report statuses; they are then polled, which takes minutes. */
function makeReportedChatProviders(): MessageDeps['providerOf'] {
  if (twilioCallbacksUrl(config) === undefined) {
    log.warn(
      { publicUrl: config.PUBLIC_URL ?? null },
      'PUBLIC_URL is not a public address: Twilio cannot report the status of messages and is polled every few minutes',
    );
  }
  return makeChatProviders(pool, config, log, tracer);
}

function readFleets(): Fleet[] {
  const { fleets: requested = 'all' } = parseArgs({ options: { fleets: { type: 'string' } }, strict: false }).values;
  const known = Object.keys(FLEETS) as Fleet[];
  if (requested === 'all') return known.filter((fleet) => !EMAIL_PARTS.includes(fleet));
  const named = String(requested)
    .split(',')
    .map((name) => {
      const fleet = known.find((each) => each === name.trim());
      return fleet ?? exitWith(`--fleets ${name}: there is no such fleet; known are ${known.join(', ')} and all`);
    });
  const part = named.includes('email') && named.find((fleet) => EMAIL_PARTS.includes(fleet));
  return part ? exitWith(`--fleets ${String(requested)}: email contains ${part}; name one of them`) : named;
}

/**
 * Workflows of single emails, and calls to email providers. Queues of groups have few slots, since each group holds many
 * emails in memory.
 */
function emailQueues(...taskQueues: readonly ('email' | 'email-bursts' | 'email-groups')[]): QueueOptions[] {
  void updateCredentialPauses(config, pool, log);
  const deps = {
    ...makeEmailDeps(config, { pool, recorder, line, stopping: ending.signal, files, log, tracer }),
    isolation,
  };
  const groups = {
    activities: makeGroupActivities(deps),
    maxConcurrentActivityTaskExecutions: 4,
    maxConcurrentActivityTaskPolls: 4,
  };
  const options = {
    email: {
      ...firstAttempts(),
      activities: makeEmailActivities(deps),
      maxConcurrentActivityTaskExecutions: 200,
      maxConcurrentActivityTaskPolls: 20,
    },
    'email-bursts': groups,
    'email-groups': groups,
  };
  return taskQueues.map((taskQueue) => ({ taskQueue, ...options[taskQueue] }));
}

/**
 * Workflows of single chat-app messages and SMS, and calls to their providers. A group holds ids only, and its members wait for the rate
 * of their number, so it costs little.
 */
function chatQueues(): QueueOptions[] {
  const deps: MessageDeps = {
    ...retrySettings(config, pool, log),
    pool,
    contents: makeEmailContents(secretKeys),
    providerOf: makeReportedChatProviders(),
    pace: makeMessagePace(config.NUMBER_MESSAGES_PER_SECOND),
    windowPolicy: config.CHATAPP_WINDOW,
    recorder,
    line,
    stopping: ending.signal,
    log,
  };
  const groups = makeMessageGroupActivities(deps);
  return [
    {
      taskQueue: 'chat',
      ...firstAttempts(),
      activities: makeMessageActivities(deps),
      maxConcurrentActivityTaskExecutions: 200,
      maxConcurrentActivityTaskPolls: 10,
    },
    {
      taskQueue: 'chat-bursts',
      activities: groups['chat-bursts'],
      maxConcurrentActivityTaskExecutions: 16,
      maxConcurrentActivityTaskPolls: 4,
    },
    {
      taskQueue: 'chat-groups',
      activities: groups['chat-groups'],
      maxConcurrentActivityTaskExecutions: 4,
      maxConcurrentActivityTaskPolls: 4,
    },
  ];
}

/**
 * Workflows of single messages. The workflow task of a first attempt lasts as long as its call to a provider, so the limit of
 * workflow tasks equals that of calls.
 */
function firstAttempts(): Partial<QueueOptions> {
  return { ...workflows(FIRST_ATTEMPTS), maxConcurrentLocalActivityExecutions: FIRST_ATTEMPTS };
}

/** The workflow code is the bundle of `npm run build`; when run from source, the SDK bundles it at startup. */
function workflows(maxConcurrentWorkflowTaskExecutions: number): Partial<QueueOptions> {
  const tasks = {
    maxConcurrentWorkflowTaskExecutions,
    maxConcurrentWorkflowTaskPolls: 20,
    // Half of the tasks are the first tasks of their workflows.
    nonStickyToStickyPollRatio: 0.5,
    maxCachedWorkflows: 1_000,
    // The tasks of a dead worker's workflows are delayed by this time.
    stickyQueueScheduleToStartTimeout: '2 s',
  } as const;
  const bundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url));
  if (existsSync(bundle)) return { ...tasks, workflowBundle: { codePath: bundle } };
  return {
    ...tasks,
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    interceptors: { workflowModules: [fileURLToPath(new URL('../../workflows/interceptors.ts', import.meta.url))] },
  };
}
