import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { parseRanges } from '../lib/ip-ranges.ts';
import { GROUP_SIZE } from '../domain/limits.ts';
import { secretKeysOf } from '../lib/secret-key.ts';
import { makeApp } from '../http/app.ts';
import { limitConnections } from '../http/plugins/connections.ts';
import { makeWithFiles } from '../intake/attachments.ts';
import { makePublicFetch } from '../public-fetch/fetch.ts';
import { startAggregatingCounts } from '../intake/aggregate-counts.ts';
import { gatherEmails } from '../intake/emails.ts';
import { makeBatchSlots } from '../intake/batch-slots.ts';
import { makeCallbackLimits } from '../intake/callback-limits.ts';
import { makeConnectionShares } from '../intake/connection-shares.ts';
import { makeNetworkLimits } from '../intake/network-limits.ts';
import { makeQuotaQueue } from '../intake/quota-queue.ts';
import { startRateLimits } from '../intake/rate-limits.ts';
import { makeTagRegistry } from '../intake/tag-registry.ts';
import { TemporalUnreachable } from '../relay/errors.ts';
import { startRelay } from '../relay/relay.ts';
import { capacityOf } from '../relay/start-limit.ts';
import { makeTemporalDispatcher } from '../relay/temporal.ts';
import { makeEmailContents } from '../store/emails/contents.ts';
import { openKeyCache } from '../store/accounts/key-cache.ts';
import { openRequestLog } from '../store/accounts/request-log.ts';
import { readPauses } from '../store/upkeep/provider-pauses.ts';
import { readPartitionOverdue } from '../upkeep/partitions.ts';
import { readClock } from '../store/postgres/clock.ts';
import { readUpkeepAges } from '../store/upkeep/tasks.ts';
import { listenToOutbox, makeNotifier } from '../store/postgres/wake.ts';
import { readRelayLag } from '../store/outbox/relay-lease.ts';
import { readDue, readOutbox } from '../store/emails/pending-work.ts';
import { checkAttachmentStore, openAttachmentStore } from './wiring/attachment-store.ts';
import { checkDatabase, openPool } from './wiring/database.ts';
import { checkAccountEmails, makeAccountEmails } from './wiring/account-emails.ts';
import { serveSite } from '../site/serve.ts';
import { serveDashboard } from './wiring/dashboard.ts';
import { readSettings } from './env.ts';
import { openOidc } from './wiring/oidc.ts';
import { openMetrics } from './wiring/metrics.ts';
import { makeFetchMedia } from './wiring/chat-media.ts';
import { exitWith, makeLog, notifyReady, stopOnSignals, tuneHeap, warnOfWeakSecretKey } from './process.ts';
import { makeSenderDomains } from './wiring/sender-domains.ts';
import { connectToTemporal, installWithMetrics, readTemporalSettings, temporalUi } from './wiring/temporal.ts';
import { openTracer, traceWorkflowStarts } from './wiring/tracing.ts';
import { makeVerifyNumber } from './wiring/verify-number.ts';
import { startWatchdog } from './watchdog.ts';

/** The maximum time of a statement that reads for a customer. */
const READ_TIMEOUT_MS = 5_000;

/** The process that serves HTTP and dispatches the outbox to Temporal. It accepts messages while Temporal is unreachable. */
const config = readSettings('DATABASE_URL', 'SECRET_KEY');
const temporal = readTemporalSettings();
const log = makeLog('api', config.LOG_LEVEL);
startWatchdog('api');
const sdk = await installWithMetrics(log);
const tracer = await openTracer(config, 'sendwright-api', log);
tuneHeap();

/** For acceptance, changes, key look-ups and the relay. */
const pool = openPool(config, log, 'api', 16);
/** For reads of customers, so that they leave the other connections to sending. */
const readPool = openPool(config, log, 'api reads', 10, { statementMs: READ_TIMEOUT_MS });
const ending = new AbortController();

let dispatch: ReturnType<typeof makeTemporalDispatcher> = () =>
  Promise.reject(new TemporalUnreachable('not connected yet'));
const relay = startRelay({
  pool,
  log,
  dispatch: (row) => dispatch(row),
  startsPerSecond: config.WORKFLOW_STARTS_PER_SECOND,
});
const connected = connect();
const stopListening = listenToOutbox(config.DATABASE_URL, 'relay', relay.wake);

const stopAggregating = startAggregatingCounts(pool, (error) =>
  log.warn({ err: error }, 'could not aggregate counts of tags and emails'),
);

const keys = openKeyCache(pool, (error) => log.warn({ err: error }, 'could not record uses of API keys'));
const requestLog =
  config.REQUEST_LOG_DAYS > 0
    ? openRequestLog(pool, (error) => log.warn({ err: error }, 'could not write the log of API requests'))
    : undefined;
const limits = startRateLimits(
  pool,
  {
    requests: config.RATE_LIMIT_RPS,
    mails: config.RATE_LIMIT_MAILS_PER_SECOND,
    domains: config.RATE_LIMIT_DOMAINS_PER_SECOND,
  },
  (error) => log.warn({ err: error }, 'rate limits not shared with other processes'),
);

const organization = {
  endpoints: config.LIMIT_ENDPOINTS,
  domains: config.LIMIT_DOMAINS,
  keys: config.LIMIT_KEYS,
  numbers: config.LIMIT_NUMBERS,
  members: config.LIMIT_MEMBERS,
  tagPairs: config.LIMIT_TAG_PAIRS,
  storedBytes: config.LIMIT_STORED_MB * 1_048_576,
};
const notify = makeNotifier(pool);
const files = await openAttachmentStore(config);
checkAttachmentStore(files, log);
const { POSTMARK_WEBHOOK_USER: user, POSTMARK_WEBHOOK_PASSWORD: password } = config;
// With only one of them, every callback would be refused, and Postmark stops retrying refused callbacks.
if (user ?? password) readSettings('POSTMARK_WEBHOOK_USER', 'POSTMARK_WEBHOOK_PASSWORD');
const accountEmails = makeAccountEmails(config);
const deps = {
  pool,
  shares: makeConnectionShares(pool, readPool),
  log,
  secretKey: secretKeysOf(config),
  publicUrl: config.PUBLIC_URL,
  accountEmails,
  oidc: await openOidc(config, log),
  files,
  withFiles: makeWithFiles({
    pool,
    files,
    fetchPublic: makePublicFetch({ allowedCidrs: config.ATTACHMENT_ALLOW_CIDRS ?? [] }),
    maxStoredBytes: organization.storedBytes,
  }),
  storeEmail: gatherEmails(pool),
  sharesWorkflows: capacityOf(config.WORKFLOW_STARTS_PER_SECOND) < GROUP_SIZE,
  contents: makeEmailContents(secretKeysOf(config)),
  webhookAllowCidrs: config.WEBHOOK_ALLOW_CIDRS ?? [],
  maxBodyBytes: config.MAX_BODY_BYTES,
  docsSenderDomain: config.DOCS_SENDER_DOMAIN,
  keys,
  requestLog,
  limits: {
    ...limits,
    quota: makeQuotaQueue(),
    batches: makeBatchSlots(),
    organization,
    tags: makeTagRegistry(pool, organization.tagPairs),
  },
  networks: makeNetworkLimits(config.RATE_LIMIT_NETWORK_RPS),
  callbackLimits: makeCallbackLimits({ messagesPerDay: config.LIMIT_RECEIVED_PER_DAY }),
  trustedProxies: parseRanges(config.TRUST_PROXY ?? []),
  postmarkCallbacks: {
    credentials: user && password ? { user, password } : null,
    broadcastStream:
      config.POSTMARK_BROADCAST_STREAM === config.POSTMARK_MESSAGE_STREAM ? null : config.POSTMARK_BROADCAST_STREAM,
  },
  senderDomains: makeSenderDomains(config, pool, secretKeysOf(config), log),
  verifyNumber: makeVerifyNumber(config),
  fetchMedia: makeFetchMedia(config),
  chatCallbacks: {
    twilioAuthToken: config.TWILIO_AUTH_TOKEN,
    metaAppSecret: config.META_APP_SECRET,
    metaVerifyToken: config.META_VERIFY_TOKEN,
  },
  retention: {
    bodyDays: config.BODY_RETENTION_DAYS,
    emailDays: config.EMAIL_RETENTION_DAYS,
    requestLogDays: config.REQUEST_LOG_DAYS,
  },
  temporalUi: temporalUi(config.TEMPORAL_UI_URL, temporal),
  metrics: openMetrics({
    pool,
    sdk,
    readGauges: async () => {
      const now = (await readClock(pool)).getTime();
      const [outbox, backlog, upkeep, pauses, partitionOverdueSeconds, lag] = await Promise.all([
        readOutbox(pool),
        readDue(pool),
        readUpkeepAges(pool),
        readPauses(pool),
        readPartitionOverdue(pool, config.EMAIL_RETENTION_DAYS, now),
        readRelayLag(pool),
      ]);
      return { outbox, backlog, upkeep, pauses, partitionOverdueSeconds, relay: lag };
    },
  }),
  tracer,
  wakeRelay: () => {
    relay.wake();
    notify();
  },
};
const app = await makeApp(deps);
limitConnections(app.server, config.MAX_CONNECTIONS, deps.trustedProxies);
await serveDashboard(app, deps);
await serveSite(app, deps);

stopOnSignals(log, config.SHUTDOWN_TIMEOUT, async () => {
  ending.abort();
  await app.close();
  await Promise.all([relay.stop(), stopListening(), stopAggregating(), keys.stop(), limits.stop(), requestLog?.stop()]);
  await (await connected)?.close();
  await Promise.all([pool.end(), readPool.end(), tracer?.stop()]);
});

// Runs after all settings have been read, so that a malformed one ends the process with a single line.
warnOfWeakSecretKey(config.SECRET_KEY, log);
void checkDatabase(pool, log);
void checkAccountEmails(accountEmails, pool, log);
const url = await app
  .listen({ port: config.PORT, host: config.HOST })
  .catch((error: unknown) =>
    exitWith(`PORT ${config.PORT} of HOST ${config.HOST} cannot be used: ${(error as Error).message}`),
  );
notifyReady({ url });

/** @returns undefined if the process was stopped before Temporal was reachable */
async function connect(): Promise<NativeConnection | undefined> {
  try {
    const connection = await connectToTemporal(temporal, log, ending.signal);
    const interceptors = tracer && { workflow: [traceWorkflowStarts(tracer)] };
    const client = new Client({ connection, namespace: temporal.namespace, ...(interceptors && { interceptors }) });
    const retry = {
      maximumAttempts: config.SEND_MAX_ATTEMPTS,
      initialInterval: config.SEND_INITIAL_INTERVAL,
      maximumInterval: config.SEND_MAX_INTERVAL,
    };
    dispatch = makeTemporalDispatcher(client, retry, tracer);
    relay.wake();
    return connection;
  } catch (error) {
    if (ending.signal.aborted) return undefined;
    throw error;
  }
}
