import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/dev-file.ts';
import { mediansByRow, quantile } from './figures.ts';
import { batchBody, call, email, postBatch, postSingles } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 3);
const SLOW_RESPONSE_MS = 30_000;
/** Milliseconds without an arrival after which all events are considered to have arrived. */
const QUIET_MS = 5_000;
/** A port at which nothing listens. */
const DEAD_URL = 'http://127.0.0.1:9/';

/** Number of batches if the emails are not posted together, and milliseconds between two of them. */
const SPREAD_BATCHES = 20;
const SPREAD_INTERVAL_MS = 3_000;

/** An event at the fast endpoint, and the milliseconds from the event to its arrival. */
interface Arrival {
  readonly type: string;
  readonly ofBatch: boolean;
  readonly at: number;
  readonly after: number;
}

/**
 * Measures how soon events reach a fast endpoint, beside one that is unreachable and one that responds after 30 s, while a
 * batch of 10,000 emails is sent, or as many in a minute, together with single emails.
 */
export async function webhooks(): Promise<void> {
  const arrivals: Arrival[] = [];
  const fast = await listen((body) => {
    const event = JSON.parse(body) as { type: string; created_at: string; data: { batchId?: string } };
    const at = Date.now();
    const after = at - Date.parse(event.created_at);
    arrivals.push({ type: event.type, ofBatch: event.data.batchId !== undefined, at, after });
    return 0;
  });
  const slow = await listen(() => SLOW_RESPONSE_MS);
  try {
    const rows = await withStack({}, async (dev) => {
      await postSingles(dev, { connections: 4, seconds: 2 });
      for (const url of [DEAD_URL, slow.url, fast.url]) await call(dev, 'POST', '/v1/webhooks', { url });
      const measured = [];
      for (const parts of [1, SPREAD_BATCHES]) {
        const runs = [];
        for (let run = 0; run < RUNS; run++) runs.push(await measure(dev, arrivals, parts));
        measured.push(...mediansByRow(runs));
      }
      return measured;
    });
    const title = `events of ${SIZE} emails and of single ones meanwhile, at the fast one of three endpoints`;
    report('webhooks', title, rows, { emails: SIZE, runs: RUNS });
  } finally {
    for (const { server } of [fast, slow]) {
      server.closeAllConnections();
      server.close();
    }
  }
}

async function measure(dev: DevFile, arrivals: Arrival[], parts: number): Promise<Row[]> {
  arrivals.splice(0);
  const singles = new AbortController();
  const sending = sendSingles(dev, singles.signal);
  const from = Date.now();
  for (let part = 0; part < parts; part++) {
    await sleep(Math.max(0, from + part * SPREAD_INTERVAL_MS - Date.now()));
    await postBatch(dev, batchBody(dev, Math.ceil(SIZE / parts)));
  }
  await calm(arrivals);
  singles.abort();
  await sending;
  const ofBatch = arrivals.filter((arrival) => arrival.ofBatch);
  const seconds = (Math.max(...ofBatch.map(({ at }) => at)) - from) / 1_000;
  const types = ['email.queued', 'email.sent', 'email.delivered'];
  const emails = parts === 1 ? 'in one batch' : `in ${(SPREAD_BATCHES * SPREAD_INTERVAL_MS) / 1_000} s`;
  return [
    ...types.map((type) =>
      row(
        emails,
        type,
        ofBatch.filter((each) => each.type === type),
      ),
    ),
    { ...row(emails, 'all', ofBatch), 'events/s': ofBatch.length / seconds },
    row(
      emails,
      'all of single emails',
      arrivals.filter((arrival) => !arrival.ofBatch),
    ),
  ];
}

function row(emails: string, events: string, arrivals: readonly Arrival[]) {
  const after = arrivals.map((arrival) => arrival.after);
  return {
    emails,
    events,
    number: after.length,
    'p50 ms': quantile(after, 0.5),
    'p95 ms': quantile(after, 0.95),
    'max ms': quantile(after, 1),
    'events/s': '' as string | number,
  };
}

/** @param take receives the posted body, and returns the milliseconds after which to respond */
async function listen(take: (body: string) => number): Promise<{ server: Server; url: string }> {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const wait = take(Buffer.concat(chunks).toString());
      if (wait === 0) response.end();
      else setTimeout(() => response.end(), wait).unref();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

/** Posts a single email every 100 ms. */
async function sendSingles(dev: DevFile, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await call(dev, 'POST', '/v1/emails', email(dev, 'single@example.net'));
    await sleep(100, undefined, { signal }).catch(() => undefined);
  }
}

/** Waits until no event of the batch has arrived for a while. */
async function calm(arrivals: readonly Arrival[]): Promise<void> {
  const count = () => arrivals.filter(({ ofBatch }) => ofBatch).length;
  for (let before = -1; before !== count();) {
    before = count();
    await sleep(QUIET_MS);
  }
}
