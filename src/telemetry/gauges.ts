import { Gauge, type Registry } from 'prom-client';
import { CHAT_PROVIDERS } from '../domain/chat/chat.ts';
import { EMAIL_PROVIDERS } from '../domain/email/email.ts';
import { cacheFor } from '../lib/cached.ts';

const PROVIDERS = [...EMAIL_PROVIDERS, ...CHAT_PROVIDERS];
const SCOPES = ['account', 'organization', 'sender'];

/** Maximum age of cached query results that a scrape reuses. */
const MAX_AGE_MS = 5_000;
const QUERY_TIMEOUT_MS = 3_000;

/** The pending work of one fleet of workers. */
interface PendingWork {
  readonly fleet: string;
  /** The number of rows, at most 10,001. */
  readonly count: number;
  /** The age of the oldest row; 0 without rows. */
  readonly oldest_seconds: number;
}

/** When a maintenance task last succeeded. */
interface UpkeepAge {
  readonly task: string;
  readonly age_seconds: number;
  readonly interval_seconds: number;
}

/** A provider account, or one of its senders, that cannot send now. */
interface PausedAccount {
  readonly provider: string;
  /** Empty for the whole account; `stream:` or `hanging:` and what alone is paused; otherwise a sender. */
  readonly sender: string;
}

/** Gauges that are read from the database, with the same values in every process. */
export interface DatabaseGauges {
  readonly upkeep: readonly UpkeepAge[];
  readonly pauses: readonly PausedAccount[];
  readonly outbox: readonly PendingWork[];
  readonly backlog: readonly PendingWork[];
  /** The time for which the oldest partition of emails has exceeded its retention; 0 if none has. */
  readonly partitionOverdueSeconds: number;
  /** Of the relay that dispatches the outbox. */
  readonly relay: { readonly lagMs: number; readonly isBehind: boolean };
}

/** The counters of `pg.Pool`. */
export interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

export function watchPool(registry: Registry, pool: PoolCounts): void {
  const registers = [registry];
  new Gauge({
    name: 'sendwright_database_pool_connections',
    help: 'Connections to Postgres that this process has.',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'busy' }, pool.totalCount - pool.idleCount);
    },
  });
  new Gauge({
    name: 'sendwright_database_pool_waiting',
    help: 'Statements of this process that wait for a connection.',
    registers,
    collect() {
      this.set(pool.waitingCount);
    },
  });
}

/** The calls of this process that send messages to a provider; those on late connections are not among `running`. */
export interface CallCounts {
  readonly provider: string;
  readonly running: number;
  readonly late: number;
  readonly waiting: number;
}

export function watchProviderLine(registry: Registry, read: () => readonly CallCounts[]): void {
  new Gauge({
    name: 'sendwright_provider_calls',
    help: 'Calls of this process that send: running, late (for more than 30 s, on other connections), and waiting for a connection.',
    labelNames: ['provider', 'state'],
    registers: [registry],
    collect() {
      for (const { provider, ...counts } of read())
        for (const [state, count] of Object.entries(counts)) this.set({ provider, state }, count);
    },
  });
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

/**
 * Adds gauges for pending work in the database. A scrape queries them at most every five seconds. While the database does not
 * respond in time, only `sendwright_database_up` has a value.
 */
export function watchDatabase(registry: Registry, read: () => Promise<DatabaseGauges>): void {
  const readCached = cacheFor(MAX_AGE_MS, () => withTimeout(read()));
  const gauge = (
    name: string,
    help: string,
    labelNames: string[],
    samplesOf: (gauges: DatabaseGauges) => readonly Sample[],
  ): void => {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const gauges = await readCached();
        this.reset();
        for (const [labels, value] of gauges ? samplesOf(gauges) : []) this.set(labels, value);
      },
    });
  };
  const samplesByFleet = (rows: readonly PendingWork[], value: 'count' | 'oldest_seconds') =>
    rows.map((row): Sample => [{ fleet: row.fleet }, row[value]]);
  const samplesByTask = (rows: readonly UpkeepAge[], value: 'age_seconds' | 'interval_seconds') =>
    rows.map((row): Sample => [{ task: row.task }, row[value]]);
  new Gauge({
    name: 'sendwright_database_up',
    help: '1 if Postgres answered the query of these gauges within 3 seconds, otherwise 0.',
    registers: [registry],
    async collect() {
      this.set((await readCached()) ? 1 : 0);
    },
  });
  gauge(
    'sendwright_outbox_rows',
    'Outbox rows that are not dispatched yet, by the fleet that will do the work; more than 10,000 count as 10,001.',
    ['fleet'],
    ({ outbox }) => samplesByFleet(outbox, 'count'),
  );
  gauge('sendwright_outbox_oldest_seconds', 'Age of the oldest of those rows.', ['fleet'], ({ outbox }) =>
    samplesByFleet(outbox, 'oldest_seconds'),
  );
  gauge(
    'sendwright_relay_lag_seconds',
    'Age of the oldest workflow of due messages that was started and has claimed none; above 1, single messages share workflows.',
    [],
    ({ relay }) => [[{}, relay.lagMs / 1_000]],
  );
  gauge(
    'sendwright_relay_shares_workflows',
    '1 while single messages share workflows because workers do not keep up, otherwise 0.',
    [],
    ({ relay }) => [[{}, relay.isBehind ? 1 : 0]],
  );
  gauge(
    'sendwright_backlog',
    'Due messages that no provider has accepted, due webhook deliveries and due domain checks; more than 10,000 count as 10,001.',
    ['fleet'],
    ({ backlog }) => samplesByFleet(backlog, 'count'),
  );
  gauge(
    'sendwright_upkeep_last_success_seconds',
    'Time since a maintenance task last ran to its end.',
    ['task'],
    ({ upkeep }) => samplesByTask(upkeep, 'age_seconds'),
  );
  gauge(
    'sendwright_upkeep_interval_seconds',
    'Interval at which a maintenance task is scheduled.',
    ['task'],
    ({ upkeep }) => samplesByTask(upkeep, 'interval_seconds'),
  );
  gauge(
    'sendwright_partition_overdue_seconds',
    'Time for which the oldest partition of emails has exceeded EMAIL_RETENTION_DAYS; 0 if none has.',
    [],
    ({ partitionOverdueSeconds }) => [[{}, partitionOverdueSeconds]],
  );
  gauge(
    'sendwright_provider_paused',
    'Provider accounts, streams (scope="account"), senders (scope="sender"), and organizations (scope="organization") that cannot send now.',
    ['provider', 'scope'],
    ({ pauses }) => pausedSamples(pauses),
  );
  gauge(
    'sendwright_backlog_oldest_seconds',
    'Time since the oldest item of the backlog became due.',
    ['fleet'],
    ({ backlog }) => samplesByFleet(backlog, 'oldest_seconds'),
  );
}

/** The series are 0 while nothing is paused, so that an alert can distinguish this from a missing metric. */
function pausedSamples(pauses: readonly PausedAccount[]): Sample[] {
  const scopeOf = ({ sender }: PausedAccount) => {
    if (sender.startsWith('hanging:')) return 'organization';
    return sender === '' || sender.startsWith('stream:') ? 'account' : 'sender';
  };
  return PROVIDERS.flatMap((provider) =>
    SCOPES.map((scope): Sample => {
      const paused = pauses.filter((pause) => pause.provider === provider && scopeOf(pause) === scope);
      return [{ provider, scope }, paused.length];
    }),
  );
}

/** @returns undefined if the query fails or times out */
async function withTimeout<T>(result: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, QUERY_TIMEOUT_MS, undefined);
  });
  return Promise.race([result.catch(() => undefined), timeout]).finally(() => clearTimeout(timer));
}
