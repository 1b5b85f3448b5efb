import { setTimeout as sleep } from 'node:timers/promises';
import { createOrganization } from '../src/accounts/organizations.ts';
import { addSender } from '../src/accounts/sms-senders.ts';
import { mapConcurrently } from '../src/lib/map-concurrently.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { quantile } from './figures.ts';
import { call, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';
import { untilMessagesSent } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 1_000);
const CONNECTIONS = 16;
/** Another organization sends an SMS this often beside the others. */
const INTERVAL_MS = 100;
/** What the provider takes of a number: what it takes by default, and what it takes of a number with a higher limit. */
const RATES = [80, 1_000];

const PATHS = { SMS: '/v1/sms', WhatsApp: '/v1/chatapp' } as const;
type Name = keyof typeof PATHS;

/** Measures chat-app messages and SMS of one organization, sent one by one, and another organization's SMS beside them. */
export async function messages(): Promise<void> {
  const rows: Row[] = [];
  for (const rate of RATES) {
    const env = { NUMBER_MESSAGES_PER_SECOND: String(rate), EMAIL_PROVIDERS: 'postmark' };
    rows.push(
      ...(await withStack({ env, fleets: ['all'], reports: false }, async (stack, pool) => {
        await warmUp(stack, 4, 1);
        const other = await otherOrganization(stack, pool);
        await measure(stack, pool, ['SMS', 'WhatsApp'], 40);
        return [
          { 'a second of a number': rate, ...(await measure(stack, pool, ['SMS'], SIZE)) },
          { 'a second of a number': rate, ...(await measure(stack, pool, ['WhatsApp'], SIZE)) },
          { 'a second of a number': rate, ...(await measure(stack, pool, ['SMS', 'WhatsApp'], SIZE)) },
          { 'a second of a number': rate, ...(await measure(stack, pool, ['SMS'], 2 * SIZE, other)) },
        ];
      })),
    );
  }
  report('messages', 'SMS and WhatsApp messages of one organization, sent one by one', rows, {
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

/** @param other an organization that sends an SMS now and then meanwhile; the times are those of its SMS then */
async function measure(stack: DevFile, pool: Pool, names: readonly Name[], count: number, other?: DevFile) {
  const began = performance.now();
  const over = new AbortController();
  const watching = other && sendNowAndThen(other, over.signal);
  const ids = (await Promise.all(names.map((name) => post(stack, name, count)))).flat();
  const acceptedMs = performance.now() - began;
  await untilMessagesSent(pool);
  over.abort();
  const beside = await watching;
  // The other organization's last one may have been accepted after all others were sent.
  await untilMessagesSent(pool);
  const all = await timesToProvider(pool, ids);
  const shown = beside ? await timesToProvider(pool, beside) : all;
  return {
    messages: `${count} ${names.join(' and ')}`,
    'times of': beside ? `${beside.length} of another` : 'all',
    'last 202 s': acceptedMs / 1_000,
    'last at the provider s': all.lastMs / 1_000,
    'p50 ms': quantile(shown.times, 0.5),
    'p99 ms': quantile(shown.times, 0.99),
    'max ms': quantile(shown.times, 1),
  };
}

async function post(stack: DevFile, name: Name, count: number): Promise<string[]> {
  return mapConcurrently(Array.from({ length: count }).keys(), CONNECTIONS, (i) => send(stack, name, i));
}

async function send(stack: DevFile, name: Name, i: number): Promise<string> {
  const body = { to: `+49151234${String(10_000 + i)}5`, text: 'Your order has left our warehouse.' };
  return (await call<{ id: string }>(stack, 'POST', PATHS[name], body)).id;
}

async function sendNowAndThen(stack: DevFile, signal: AbortSignal): Promise<string[]> {
  const ids: string[] = [];
  while (!signal.aborted) {
    ids.push(await send(stack, 'SMS', ids.length));
    await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
  return ids;
}

async function otherOrganization(stack: DevFile, pool: Pool): Promise<DevFile> {
  const { id, api_key } = await createOrganization(pool, 'Other');
  await addSender(pool, id, '+12025550199', []);
  return { ...stack, organization_id: id, api_key };
}

/** Milliseconds from acceptance to the provider's acceptance of each, and from the first acceptance to the last one's. */
async function timesToProvider(pool: Pool, ids: readonly string[]): Promise<{ times: number[]; lastMs: number }> {
  const { rows } = await pool.query<{ from_ms: number; until_ms: number }>(
    `SELECT (extract(epoch FROM message.created_at) * 1000)::float8 AS from_ms,
            (extract(epoch FROM attempt.ended_at) * 1000)::float8 AS until_ms
     FROM chat_messages AS message JOIN attempts AS attempt ON attempt.message_id = message.id AND attempt.outcome = 'sent'
     WHERE message.id = ANY ($1)`,
    [ids],
  );
  if (rows.length !== ids.length) throw new Error(`${rows.length} of ${ids.length} messages were sent once`);
  const first = Math.min(...rows.map((row) => row.from_ms));
  const last = Math.max(...rows.map((row) => row.until_ms));
  return { times: rows.map((row) => row.until_ms - row.from_ms), lastMs: last - first };
}
