import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/embedded/dev-file.ts';
import { makePool, type Pool } from '../src/store/pool.ts';
import { behave, call, email, type Load, postSingles } from './load.ts';
import { withStack } from './stack.ts';
import { median, printTable } from './table.ts';

const RUNS = 3;
const SIZE = 10_000;
const BATCHES = 3;
const SECONDS = 10;
const CONNECTIONS = 32;
/** Milliseconds the simulated provider takes for one call. */
export const PROVIDER_LATENCY = 30;
/** Milliseconds after which emails that are not through count as stuck. */
const GIVE_UP = 300_000;

/** How many emails a second go the whole way, accepted and sent, while nobody holds the senders back. */
export async function drain(): Promise<void> {
  const rows = [];
  for (const provider of ['postmark', 'smtp']) {
    rows.push(
      ...(await withStack({ env: { EMAIL_PROVIDERS: provider } }, async (stack) => {
        const pool = makePool(stack.database_url, 'bench', 2, () => undefined);
        try {
          await behave(stack, { latency_ms: PROVIDER_LATENCY });
          await postSingles(stack, { connections: 8, seconds: 2 });
          await untilSent(pool);
          return [await batches(stack, pool, provider), await singles(stack, pool, provider)];
        } finally {
          await pool.end();
        }
      })),
    );
  }
  printTable(`Emails of 3 kB accepted and sent; medians of ${RUNS} runs`, rows);
}

async function batches(stack: DevFile, pool: Pool, provider: string) {
  const emails = Array.from({ length: SIZE }, (_, i) => email(stack, `person-${i}@example.net`));
  const body = JSON.stringify({ emails });
  const runs = [];
  for (let run = 0; run < RUNS; run++) {
    await untilQuiet(pool);
    const began = performance.now();
    for (let i = 0; i < BATCHES; i++) await call(stack, 'POST', '/v1/emails/batch', body);
    const accepting = (performance.now() - began) / 1_000;
    await untilSent(pool);
    const all = (performance.now() - began) / 1_000;
    runs.push({ accepted: (BATCHES * SIZE) / accepting, sent: (BATCHES * SIZE) / all });
  }
  return row(`${BATCHES} batches of ${SIZE}`, provider, runs);
}

async function singles(stack: DevFile, pool: Pool, provider: string) {
  const runs = [];
  for (let run = 0; run < RUNS; run++) {
    await untilQuiet(pool);
    const began = performance.now();
    const load: Load = await postSingles(stack, { connections: CONNECTIONS, seconds: SECONDS });
    const { waiting } = await backlog(pool);
    await untilSent(pool);
    const all = (performance.now() - began) / 1_000;
    runs.push({ accepted: load.perSecond, sent: load.accepted / all, p99: load.p99, waiting });
  }
  return {
    ...row(`singles by ${CONNECTIONS} connections`, provider, runs),
    'p99 ms': median(runs.map(({ p99 }) => p99)),
    'waiting at the end': median(runs.map(({ waiting }) => waiting)),
  };
}

function row(emails: string, provider: string, runs: readonly { accepted: number; sent: number }[]) {
  return {
    emails,
    provider,
    'accepted/s': median(runs.map(({ accepted }) => accepted)),
    'sent/s': median(runs.map(({ sent }) => sent)),
    'p99 ms': '' as string | number,
    'waiting at the end': '' as string | number,
  };
}

/** How many emails wait for their provider. */
export async function backlog(pool: Pool): Promise<{ waiting: number }> {
  const { rows } = await pool.query<{ waiting: number }>(
    `SELECT count(*)::int AS waiting FROM emails WHERE status IN ('queued', 'scheduled')`,
  );
  return rows[0] ?? { waiting: 0 };
}

/** Waits until every email has been handed over. */
export async function untilSent(pool: Pool): Promise<void> {
  const from = performance.now();
  for (;;) {
    const { rows } = await pool.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM emails WHERE status IN ('queued', 'scheduled')) AS open`,
    );
    if (!rows[0]?.open) return;
    if (performance.now() - from > GIVE_UP) throw new Error('emails are stuck');
    await sleep(50);
  }
}

/** Waits until the provider has nothing to report about earlier emails. */
export async function untilQuiet(pool: Pool): Promise<void> {
  let before: number | undefined;
  for (;;) {
    const { rows } = await pool.query<{ sent: number }>(
      `SELECT count(*)::int AS sent FROM emails WHERE status = 'sent'`,
    );
    if (rows[0]?.sent === before) return;
    before = rows[0]?.sent;
    await sleep(2_000);
  }
}
