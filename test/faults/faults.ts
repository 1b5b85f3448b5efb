import { setTimeout as sleep } from 'node:timers/promises';
import type { PartName } from '../../src/main/dev-file.ts';
import { type Pool, transaction } from '../../src/store/postgres/pool.ts';
import { clocks } from './clocks.ts';
import { diskFaults } from './disk.ts';
import { drains } from './drain.ts';
import { failOvers } from './fail-over.ts';
import { awaitTraffic, type Fault, repeatedly, type FaultContext } from './fault.ts';
import { providerFaults } from './provider-faults.ts';
import { storm } from './storm.ts';
import type { ProxyName } from './stack.ts';
import { hostFaults } from './vanish.ts';

const NAMES: Readonly<Record<PartName, string>> = {
  api: 'the API',
  worker: 'the worker',
  simulator: 'the provider',
  temporal: 'Temporal',
  postgres: 'Postgres',
};

function kill(part: PartName): Fault {
  return { what: `kill -9 of ${NAMES[part]}`, inject: async ({ stack }) => stack.parts.kill(part) };
}

function freeze(part: PartName): Fault {
  return { what: `${NAMES[part]} frozen`, inject: ({ stack, durationMs }) => stack.parts.freeze(part, durationMs) };
}

function stopPart(part: PartName): Fault {
  return { what: `${NAMES[part]} away`, inject: ({ stack, durationMs }) => stack.parts.stopFor(part, durationMs) };
}

function cutConnections(what: string, ...proxies: ProxyName[]): Fault {
  return {
    what: `connections to ${what} cut`,
    stack: { proxies },
    inject: (context) =>
      repeatedly(context, [50, 800], () => proxies.forEach((name) => context.stack.proxy(name).cut())),
  };
}

function unreachable(what: string, ...proxies: ProxyName[]): Fault {
  return {
    what: `${what} unreachable`,
    stack: { proxies },
    async inject({ stack, durationMs }) {
      for (const name of proxies) stack.proxy(name).shut();
      await sleep(durationMs);
      for (const name of proxies) stack.proxy(name).open();
    },
  };
}

function silent(what: string, ...proxies: ProxyName[]): Fault {
  return {
    what: `the network to ${what} silent`,
    stack: { proxies },
    async inject({ stack, durationMs }) {
      for (const name of proxies)
        for (const direction of ['request', 'response'] as const) stack.proxy(name).hold(direction);
      await sleep(durationMs);
      for (const name of proxies) stack.proxy(name).release();
    },
  };
}

/** All proxies to one part. */
const TO = {
  postgres: ['Postgres', 'api-postgres', 'worker-postgres'],
  temporal: ['Temporal', 'api-temporal', 'worker-temporal'],
  provider: ['the provider', 'worker-provider'],
} as const;

const BATCH = 10_000;
/** Beside a large batch, few other messages. */
const TRAFFIC_WITH_BATCH = { lines: 1, rest: 300 };
/** The name of the prepared statement that stores emails. */
const STORES = 'accept_emails';
/** After this time Postgres has committed; its answer is held back. */
const COMMIT_MS = 300;

const apiFaults: Readonly<Record<string, Fault>> = {
  'api-kill': kill('api'),
  'api-kill-in-batch': {
    what: 'kill -9 of the API while 10,000 rows are inserted',
    stack: { proxies: ['api-postgres'] },
    mix: TRAFFIC_WITH_BATCH,
    async inject({ stack, generator, random }) {
      // It is stored in 40 statements.
      let remaining = random.integer(2, 40);
      const now = awaitTraffic(stack.proxy('api-postgres'), (direction, data) => {
        if (direction === 'request' && data.includes(STORES)) remaining--;
        return remaining <= 0;
      });
      const posted = generator.postBatch(BATCH, true);
      await now;
      stack.parts.kill('api');
      await posted;
    },
  },
  'api-kill-after-commit': {
    what: 'kill -9 of the API between commit and answer',
    stack: { proxies: ['api-postgres'] },
    async inject({ stack }) {
      const proxy = stack.proxy('api-postgres');
      await awaitTraffic(proxy, (direction, data) => {
        const isNow = direction === 'request' && data.includes(STORES);
        if (isNow) proxy.hold('response');
        return isNow;
      });
      await sleep(COMMIT_MS);
      stack.parts.kill('api');
      proxy.release();
    },
  },
  'api-kill-in-upload': {
    what: 'kill -9 of the API at a body of 40 MB',
    async inject({ stack, generator, random }) {
      const content = Buffer.alloc(29_000_000, 'x').toString('base64');
      const posted = generator.postOne(true, { attachments: [{ filename: 'large.txt', content }] });
      await sleep(random.between(50, 900));
      stack.parts.kill('api');
      await posted;
    },
  },
  'api-freeze': freeze('api'),
};

/** After this time from the death of a worker, another one has taken over its messages. Reports are held back until then. */
const TAKEOVER_MS = 25_000;
const TRAFFIC_WITH_TAKEOVER = { rest: 250 };

/** Kills the worker while reports are held back, until another worker has its messages. */
async function killUnreported({ stack }: FaultContext, release: () => void): Promise<void> {
  stack.parts.kill('worker');
  await stack.parts.serving();
  release();
  await sleep(TAKEOVER_MS);
  stack.proxy('provider-api').open();
}

const SENDS = /^POST /;

const workerFaults: Readonly<Record<string, Fault>> = {
  'worker-kill': kill('worker'),
  'worker-kill-before-request': {
    what: 'kill -9 of the worker before the provider has the request',
    stack: { proxies: ['worker-provider'] },
    async inject({ stack }) {
      const proxy = stack.proxy('worker-provider');
      await awaitTraffic(proxy, (direction, data) => {
        const isNow = direction === 'request' && SENDS.test(data.toString('latin1', 0, 5));
        if (isNow) proxy.hold('request');
        return isNow;
      });
      stack.parts.kill('worker');
      await stack.parts.serving();
      proxy.release();
    },
  },
  'worker-kill-before-answer': {
    what: 'kill -9 of the worker when the provider has the request and has not answered',
    stack: { proxies: ['worker-provider', 'provider-api'] },
    mix: TRAFFIC_WITH_TAKEOVER,
    async inject(context) {
      const proxy = context.stack.proxy('worker-provider');
      context.stack.proxy('provider-api').shut();
      await awaitTraffic(proxy, (direction) => {
        if (direction === 'response') proxy.hold('response');
        return direction === 'response';
      });
      await sleep(context.random.between(0, 500));
      await killUnreported(context, proxy.release);
    },
  },
  'worker-kill-after-answer': {
    what: 'kill -9 of the worker when the provider has answered and nothing is recorded',
    stack: { proxies: ['worker-provider', 'worker-postgres', 'provider-api'] },
    mix: TRAFFIC_WITH_TAKEOVER,
    async inject(context) {
      const database = context.stack.proxy('worker-postgres');
      context.stack.proxy('provider-api').shut();
      await awaitTraffic(context.stack.proxy('worker-provider'), (direction) => {
        if (direction === 'response') database.hold('request');
        return direction === 'response';
      });
      await sleep(context.random.between(50, 500));
      await killUnreported(context, database.release);
    },
  },
  'worker-kill-in-batch': {
    what: 'kill -9 of the worker while a batch of 10,000 is sent',
    mix: TRAFFIC_WITH_BATCH,
    async inject({ stack, generator, random }) {
      await generator.postBatch(BATCH, true);
      await sleep(random.between(0, 3_000));
      stack.parts.kill('worker');
    },
  },
  'worker-kill-slow-smtp': {
    what: 'kill -9 of the worker while an SMTP server takes 5 s to confirm each message',
    mix: { large: 0.5, chats: 0, rest: 250 },
    async inject({ stack, generator, random, expect, print }) {
      const calls = async () => {
        const { rows } = await stack.pool.query<{ all: number; complete: number }>(
          `SELECT count(*)::int AS all, count(*) FILTER (WHERE handed_over)::int AS complete FROM attempts
           WHERE provider = 'smtp' AND outcome IS NULL`,
        );
        return rows[0] ?? { all: 0, complete: 0 };
      };
      await stack.setBehaviour({ latency_ms: 5_000 });
      await Promise.all(Array.from({ length: 60 }, () => generator.postLarge(true)));
      for (const until = Date.now() + 20_000; (await calls()).complete === 0 && Date.now() < until;) await sleep(50);
      await sleep(random.between(0, 4_000));
      stack.parts.kill('worker');
      const { all, complete } = await calls();
      expect(complete > 0, 'calls to the SMTP server were under way');
      print(`  ${all} calls to the SMTP server were under way, ${complete} of them waited for the reply`);
      await stack.parts.serving();
      await stack.setBehaviour({});
    },
  },
  'worker-freeze': freeze('worker'),
  'worker-out-of-memory': {
    what: 'a worker gets no more memory while a batch of 2,000 is sent',
    mix: TRAFFIC_WITH_BATCH,
    async inject({ stack, generator, random }) {
      const died = stack.parts.awaitExit('worker');
      const posted = generator.postBatch(2_000, true);
      await sleep(random.between(0, 1_500));
      stack.parts.exhaustMemory('worker');
      // An idle worker allocates little, so more email is posted until it ends.
      const posts = [posted];
      let how: string | undefined;
      for (let i = 0; i < 10 && how === undefined; i++) {
        how = await Promise.race([died, sleep(3_000, undefined, { ref: false })]);
        if (how === undefined) posts.push(generator.postBatch(200, true));
      }
      // A worker that survives or hangs is killed.
      if (how === undefined) stack.parts.kill('worker');
      await Promise.all([...posts, stack.parts.serving()]);
    },
  },
};

const storeFaults: Readonly<Record<string, Fault>> = {
  'postgres-kill': kill('postgres'),
  'postgres-restart-in-batch': {
    what: 'Postgres restarted while a batch of 10,000 is sent',
    mix: TRAFFIC_WITH_BATCH,
    async inject({ stack, generator, random }) {
      await generator.postBatch(BATCH, true);
      await sleep(random.between(0, 3_000));
      await stack.parts.end('postgres', 'SIGINT');
    },
  },
  'postgres-away': stopPart('postgres'),
  'postgres-freeze': freeze('postgres'),
  'temporal-kill': kill('temporal'),
  'temporal-away': stopPart('temporal'),
  'temporal-freeze': freeze('temporal'),
  'temporal-kill-at-timers': {
    what: 'kill -9 of Temporal when 2,300 scheduled emails are due',
    mix: { lines: 1, rest: 300 },
    async inject({ stack, generator, random }) {
      const wait = 12_000;
      const due = Date.now() + wait;
      const scheduled_at = new Date(due).toISOString();
      await generator.postBatch(2_000, true, due - Date.now());
      await Promise.all(Array.from({ length: 300 }, () => generator.postOne(true, { scheduled_at })));
      await sleep(Math.max(0, due - Date.now() + random.between(-1_500, 1_000)));
      stack.parts.kill('temporal');
    },
  },
  'cut-postgres': cutConnections(...TO.postgres),
  'cut-temporal': cutConnections(...TO.temporal),
  'cut-provider': cutConnections(...TO.provider),
  'unreachable-postgres': unreachable(...TO.postgres),
  'unreachable-temporal': unreachable(...TO.temporal),
  'unreachable-provider': unreachable(...TO.provider),
  'silent-postgres': silent(...TO.postgres),
  'silent-temporal': silent(...TO.temporal),
  'silent-provider': silent(...TO.provider),
};

/** A process must end within this time after SIGTERM. */
const STOP_TIMEOUT_MS = 30_000;

/** Holds the lock that `CREATE INDEX` takes. */
async function blockEvents(pool: Pool, ms: number): Promise<void> {
  await transaction(pool, async (client) => {
    await client.query('LOCK TABLE email_events IN SHARE MODE');
    // Postgres ends idle transactions.
    for (const until = Date.now() + ms; Date.now() < until;) await client.query('SELECT pg_sleep(1)');
  });
}

const others: Readonly<Record<string, Fault>> = {
  shutdown: {
    what: 'SIGTERM to API and worker',
    async inject({ stack, expect }) {
      const endings = await Promise.all([stack.parts.end('api', 'SIGTERM'), stack.parts.end('worker', 'SIGTERM')]);
      for (const { how, ms } of endings) {
        expect(how === 'ended with 0', `after SIGTERM, it ${how}`);
        expect(ms < STOP_TIMEOUT_MS, `after SIGTERM, it took ${ms} ms`);
      }
    },
  },
  'shutdown-slow-smtp': {
    what: 'SIGTERM to the worker while an SMTP server takes 3 s for each message',
    mix: { large: 0.5, chats: 0 },
    async inject({ stack, generator, random, expect }) {
      await stack.setBehaviour({ latency_ms: 3_000 });
      await Promise.all(Array.from({ length: 60 }, () => generator.postLarge(true)));
      await sleep(random.between(500, 3_000));
      const { how, ms } = await stack.parts.end('worker', 'SIGTERM');
      expect(how === 'ended with 0', `after SIGTERM, it ${how}`);
      expect(ms < STOP_TIMEOUT_MS, `after SIGTERM, it took ${ms} ms`);
      await stack.parts.serving();
      await stack.setBehaviour({});
    },
  },
  'events-blocked': {
    what: 'an index is built on email_events: nothing can be written to it for 10 minutes',
    isLong: true,
    mix: { large: 0.3, rest: 1_000 },
    inject: ({ stack, minutes }) => blockEvents(stack.pool, minutes * 60_000),
  },
  'cancel-race': {
    what: 'emails called back at the moment they are due',
    mix: { batches: 0, chats: 0, large: 0, scheduled: 1, canceled: 0.9, dueIn: [1_500, 2_500], rest: 20 },
    inject: ({ durationMs }) => sleep(durationMs),
  },
  'endpoint-down': {
    what: "the customer's endpoint refuses, then breaks off",
    async inject({ receiver, random }) {
      receiver.setMode(random.chance(0.5) ? 'refuses' : 'breaks off');
      await sleep(random.between(1_000, 3_000));
      receiver.setMode('accepts');
    },
  },
};

/** All faults by name, in the order of a message's path. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  ...apiFaults,
  ...workerFaults,
  ...storeFaults,
  'simulator-kill': kill('simulator'),
  'simulator-away': stopPart('simulator'),
  'simulator-freeze': freeze('simulator'),
  ...providerFaults,
  ...drains,
  ...others,
  ...hostFaults,
  ...failOvers,
  ...clocks,
  ...diskFaults,
  storm,
};
