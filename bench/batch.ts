import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { DevFile } from '../src/main/embedded/dev-file.ts';
import { makePool, type Pool } from '../src/store/pool.ts';
import { behave, email, headers, postSingles } from './load.ts';
import { withStack } from './stack.ts';
import { median, printTable, quantile } from './table.ts';
import { watchMemory } from './usage.ts';

const SIZE = 10_000;
const RUNS = 3;
/** Milliseconds the simulated provider takes for one call. */
const PROVIDER_LATENCY = 30;
/** Milliseconds after which a batch that is not through counts as stuck. */
const GIVE_UP = 300_000;

interface Run {
  /** Milliseconds until 202. */
  readonly accepted: number;
  /** Milliseconds from 202 until the provider had the last one. */
  readonly drained: number;
  /** Milliseconds of other requests meanwhile. */
  readonly others: readonly number[];
  /** Milliseconds from a single mail's 202 until the provider had it, meanwhile. */
  readonly singles: readonly number[];
  /** Megabytes at most. */
  readonly api: number;
  readonly worker: number;
}

/** A batch of 10,000 emails of 3 kB: how soon it is accepted and sent, and what others notice of it. */
export async function batch(): Promise<void> {
  const rows = [];
  for (const [provider, names] of [
    ['Postmark', 'postmark'],
    ['SMTP', 'smtp'],
  ] as const) {
    const runs = await withStack({ env: { EMAIL_PROVIDERS: names } }, async (dev) => {
      await behave(dev, { latency_ms: PROVIDER_LATENCY });
      await postSingles(dev, { connections: 4, seconds: 2 });
      const measured: Run[] = [];
      for (let run = 0; run < RUNS; run++) measured.push(await measure(dev));
      return measured;
    });
    const of = (value: (run: Run) => number) => median(runs.map(value));
    rows.push({
      provider,
      '202 ms': of((run) => run.accepted),
      'last sent s': of((run) => run.drained / 1_000),
      'others p99 ms': of((run) => quantile(run.others, 0.99)),
      'single sent p95 ms': of((run) => quantile(run.singles, 0.95)),
      'api MB': of((run) => run.api),
      'worker MB': of((run) => run.worker),
    });
  }
  printTable(`A batch of ${SIZE} emails of 3 kB, provider at ${PROVIDER_LATENCY} ms; medians of ${RUNS} runs`, rows);
}

async function measure(dev: DevFile): Promise<Run> {
  const pool = makePool(dev.database_url, 'bench', 4, () => undefined);
  const body = JSON.stringify({
    emails: Array.from({ length: SIZE }, (_, i) => email(dev, `person-${i}@example.net`)),
  });
  await calm(pool);
  const over = new AbortController();
  const others = watchOthers(dev, over.signal);
  const memory = watchMemory(dev, over.signal);
  try {
    const began = performance.now();
    const answer = await request(`${dev.base_url}/v1/emails/batch`, { method: 'POST', headers: headers(dev), body });
    const { id } = (await answer.body.json()) as { id: string };
    if (answer.statusCode !== 202) throw new Error(`answered ${answer.statusCode}`);
    const accepted = performance.now() - began;
    const from = performance.now();
    for (;;) {
      const { rows } = await pool.query<{ open: boolean }>(
        `SELECT EXISTS (SELECT FROM emails WHERE batch_id = $1 AND status IN ('queued', 'scheduled')) AS open`,
        [id],
      );
      if (!rows[0]?.open) break;
      if (performance.now() - from > GIVE_UP) throw new Error('the batch is stuck');
      await sleep(50);
    }
    const drained = performance.now() - from;
    over.abort();
    const { latencies, ids } = await others;
    return { accepted, drained, others: latencies, singles: await handOvers(pool, ids), ...(await memory) };
  } finally {
    over.abort();
    await pool.end();
  }
}

/** Waits until the provider has nothing to report about earlier emails. */
async function calm(pool: Pool): Promise<void> {
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

/** Sends a single email every 50 ms and reads it back. */
async function watchOthers(dev: DevFile, signal: AbortSignal) {
  const latencies: number[] = [];
  const ids: string[] = [];
  const timed = async (path: string, body?: string) => {
    const began = performance.now();
    const answer = await request(`${dev.base_url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: headers(dev),
      ...(body !== undefined && { body }),
    });
    const { id } = (await answer.body.json()) as { id: string };
    latencies.push(performance.now() - began);
    return id;
  };
  while (!signal.aborted) {
    const id = await timed('/v1/emails', JSON.stringify(email(dev, 'single@example.net')));
    ids.push(id);
    await timed(`/v1/emails/${id}`);
    await sleep(50, undefined, { signal }).catch(() => undefined);
  }
  return { latencies, ids };
}

/** Milliseconds from acceptance to the provider's yes, which the timeline holds. */
async function handOvers(pool: Pool, ids: readonly string[]): Promise<number[]> {
  await sleep(2_000);
  const { rows } = await pool.query<{ ms: number }>(
    `SELECT (extract(epoch FROM event.created_at - email.created_at) * 1000)::float8 AS ms
     FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
     WHERE email.id = ANY ($1)`,
    [ids],
  );
  return rows.map(({ ms }) => ms);
}
