import { Gauge, type Registry } from 'prom-client';
import { CHAT_PROVIDERS } from '../domain/chat/chat.ts';
import { EMAIL_PROVIDERS } from '../domain/email/email.ts';

const PROVIDERS = [...EMAIL_PROVIDERS, ...CHAT_PROVIDERS];
const SCOPES = ['account', 'sender'];

/** Milliseconds for which an answer of the database is good enough, and those that a scrape waits for one. */
const FRESH = 5_000;
const PATIENCE = 3_000;

/** What waits for a fleet of workers. */
export interface Waiting {
  readonly fleet: string;
  /** Rows, or a number that they are more than. */
  readonly count: number;
  /** Seconds for which the oldest has waited; 0 when there is none. */
  readonly oldest: number;
}

/** When a maintenance task last succeeded. */
export interface UpkeepAge {
  readonly task: string;
  readonly age_seconds: number;
  readonly interval_seconds: number;
}

/** A provider account, or one sender of it, that cannot send now. */
export interface PausedAccount {
  readonly provider: string;
  /** Empty for the whole account. */
  readonly sender: string;
}

/** What waits in the database, whichever process looks. */
export interface WaitingInDatabase {
  readonly upkeep: readonly UpkeepAge[];
  readonly pauses: readonly PausedAccount[];
  readonly outbox: readonly Waiting[];
  readonly backlog: readonly Waiting[];
}

/** As the driver's pool says it. */
export interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** Says how a process's database connections are used. */
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

/**
 * Says what waits in the database, asked when the metrics are and at most every five seconds. While the database does not
 * answer in time, nothing is said but that.
 */
export function watchDatabase(registry: Registry, read: () => Promise<WaitingInDatabase>): void {
  const registers = [registry];
  const look = latest(read);
  const each = (name: string, help: string, valueOf: (waiting: WaitingInDatabase) => [Waiting, number][]): void => {
    new Gauge({
      name,
      help,
      labelNames: ['fleet'],
      registers,
      async collect() {
        const waiting = await look();
        this.reset();
        for (const [{ fleet }, value] of waiting ? valueOf(waiting) : []) this.set({ fleet }, value);
      },
    });
  };
  new Gauge({
    name: 'sendwright_database_up',
    help: 'Whether Postgres says what waits: 1, or 0 when it does not within 3 seconds.',
    registers,
    async collect() {
      this.set((await look()) ? 1 : 0);
    },
  });
  each(
    'sendwright_outbox_rows',
    'Outbox rows that Temporal is still to be asked for, by the fleet that will do the work; more than 10,000 count as 10,001.',
    ({ outbox }) => outbox.map((row) => [row, row.count]),
  );
  each('sendwright_outbox_oldest_seconds', 'How old the oldest of those rows is.', ({ outbox }) =>
    outbox.map((row) => [row, row.oldest]),
  );
  each(
    'sendwright_backlog',
    'Messages that are due and that no provider has taken, and webhook deliveries that are due; more than 10,000 count as 10,001.',
    ({ backlog }) => backlog.map((row) => [row, row.count]),
  );
  const eachTask = (name: string, help: string, valueOf: (age: UpkeepAge) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['task'],
      registers,
      async collect() {
        const waiting = await look();
        this.reset();
        for (const age of waiting?.upkeep ?? []) this.set({ task: age.task }, valueOf(age));
      },
    });
  };
  eachTask(
    'sendwright_upkeep_last_success_seconds',
    'How long ago a maintenance task last ran to its end.',
    (age) => age.age_seconds,
  );
  eachTask(
    'sendwright_upkeep_interval_seconds',
    'How often a maintenance task is scheduled.',
    (age) => age.interval_seconds,
  );
  new Gauge({
    name: 'sendwright_provider_paused',
    help: 'Provider accounts or message streams that cannot send now (scope="account"), and senders that their provider refuses (scope="sender").',
    labelNames: ['provider', 'scope'],
    registers,
    async collect() {
      const waiting = await look();
      this.reset();
      if (!waiting) return;
      // A series that is 0 while nothing is paused: an alert can tell that from a metric that is missing.
      for (const provider of PROVIDERS) for (const scope of SCOPES) this.set({ provider, scope }, 0);
      for (const { provider, sender } of waiting.pauses)
        this.inc({ provider, scope: sender === '' || sender.startsWith('stream:') ? 'account' : 'sender' });
    },
  });
  each('sendwright_backlog_oldest_seconds', 'How long the oldest of what is due has been due.', ({ backlog }) =>
    backlog.map((row) => [row, row.oldest]),
  );
}

/** One question at a time, and none while the last answer is fresh. @returns undefined when there is no answer in time */
function latest<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let asked: Promise<T | undefined> | undefined;
  let at = -Infinity;
  return () => {
    if (!asked || performance.now() - at > FRESH) {
      at = performance.now();
      asked = inTime(read());
    }
    return asked;
  };
}

async function inTime<T>(answer: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, PATIENCE, undefined);
  });
  return Promise.race([answer.catch(() => undefined), late]).finally(() => clearTimeout(timer));
}
