import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { DevFile } from '../src/main/dev-file.ts';
import { ATTACHMENTS_BYTES } from '../src/domain/limits.ts';
import { mediansByRow } from './figures.ts';
import { batchBody, email, headers, postBatch, postSingles } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { watchMemory } from './usage.ts';
import { untilQuiet } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 3);
const BATCHES = 4;
const LARGE_POSTS = 8;
const IDLE_MS = 5_000;

/** Measures the maximum memory of api and worker: idle, with batches, and with the largest requests. */
export async function memory(): Promise<void> {
  const runs = [];
  for (let run = 0; run < RUNS; run++) {
    runs.push(
      await withStack({}, async (stack, pool, processes) => {
        const idle = await watch('nothing', processes, () => sleep(IDLE_MS, ''));
        await postSingles(stack, { connections: 4, seconds: 2 });
        const batches = await watch(`${BATCHES} batches of ${SIZE}`, processes, async () => {
          const body = batchBody(stack, SIZE);
          for (let i = 0; i < BATCHES; i++) await postBatch(stack, body);
          await untilQuiet(pool);
          return `${BATCHES} × 202`;
        });
        const after = await watch('nothing again', processes, () => sleep(IDLE_MS, ''));
        const posts = await watch(`${LARGE_POSTS} concurrent posts of 42 MB`, processes, async () => {
          const answers = await postLarge(stack);
          await untilQuiet(pool);
          return answers;
        });
        return [idle, batches, after, posts];
      }),
    );
  }
  report('memory', 'megabytes held at most', mediansByRow(runs), { runs: RUNS });
}

/** @param run resolves to a description of the responses */
async function watch(during: string, processes: readonly Processes[], run: () => Promise<string>): Promise<Row> {
  const over = new AbortController();
  const held = watchMemory(processes, over.signal);
  try {
    const answers = await run();
    over.abort();
    const { api, worker } = await held;
    return { during, 'api MB': api, 'worker MB': worker, answers };
  } finally {
    over.abort();
  }
}

/** Posts emails with the maximum size of attachments concurrently. @returns the number of responses per status */
async function postLarge(stack: DevFile): Promise<string> {
  const content = Buffer.alloc(ATTACHMENTS_BYTES, 'a file. ').toString('base64');
  const body = JSON.stringify({ ...email(stack, 'large@example.net'), attachments: [{ filename: 'a.pdf', content }] });
  const answered = await Promise.all(
    Array.from({ length: LARGE_POSTS }, async () => {
      const answer = await request(`${stack.base_url}/v1/emails`, { method: 'POST', headers: headers(stack), body });
      await answer.body.dump();
      return answer.statusCode;
    }),
  );
  const statuses = [...new Set(answered)].sort();
  return statuses.map((status) => `${answered.filter((each) => each === status).length} × ${status}`).join(', ');
}
