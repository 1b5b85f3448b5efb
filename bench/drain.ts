import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { repeat } from './figures.ts';
import { batchBody, postBatch, PROVIDER_LATENCY_MS, postSingles, warmUp } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';
import { countPending, untilQuiet, untilSent } from './waiting.ts';

const RUNS = size('BENCH_RUNS', 3);
const SIZE = size('BENCH_SIZE', 10_000);
const SECONDS = size('BENCH_SECONDS', 8);
const CONNECTIONS = 32;
/** By SMTP each email is a separate call, so fewer emails measure the same in less time. */
const PROVIDERS = [
  { provider: 'postmark', batches: 2, emails: SIZE, seconds: SECONDS },
  { provider: 'smtp', batches: 1, emails: Math.ceil(SIZE / 2), seconds: Math.ceil(SECONDS / 3) },
];

type Amount = (typeof PROVIDERS)[number];

/** Measures how many emails per second are accepted and sent while senders are not limited. */
export async function drain(): Promise<void> {
  const rows = [];
  for (const amount of PROVIDERS) {
    rows.push(
      ...(await withStack({ env: { EMAIL_PROVIDERS: amount.provider } }, async (stack, pool) => {
        await warmUp(stack, 8, 2);
        return [
          await repeat(RUNS, () => batches(stack, pool, amount)),
          await repeat(RUNS, () => singles(stack, pool, amount)),
        ];
      })),
    );
  }
  report('drain', 'emails accepted and sent', rows, { runs: RUNS, latency_ms: PROVIDER_LATENCY_MS });
}

async function batches(stack: DevFile, pool: Pool, { provider, batches: count, emails }: Amount): Promise<Row> {
  const body = batchBody(stack, emails);
  await untilQuiet(pool);
  const began = performance.now();
  for (let i = 0; i < count; i++) await postBatch(stack, body);
  const accepting = (performance.now() - began) / 1_000;
  const { pending } = await countPending(pool);
  await untilSent(pool);
  const all = (performance.now() - began) / 1_000;
  return {
    provider,
    emails: `${count} × ${emails} in batches`,
    'accepted/s': (count * emails) / accepting,
    'sent/s': (count * emails) / all,
    'waiting when all are accepted': pending,
  };
}

async function singles(stack: DevFile, pool: Pool, { provider, seconds }: Amount): Promise<Row> {
  await untilQuiet(pool);
  const began = performance.now();
  const { accepted, perSecond } = await postSingles(stack, { connections: CONNECTIONS, seconds });
  const { pending } = await countPending(pool);
  await untilSent(pool);
  const all = (performance.now() - began) / 1_000;
  return {
    provider,
    emails: `singles by ${CONNECTIONS} connections for ${seconds} s`,
    'accepted/s': perSecond,
    'sent/s': accepted / all,
    'waiting when all are accepted': pending,
  };
}
