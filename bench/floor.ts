import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { DevFile } from '../src/main/dev-file.ts';
import { medians } from './figures.ts';
import { PROVIDER_LATENCY_MS, postSome } from './load.ts';
import { setBehaviour } from '../dev/simulator/set-behaviour.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { perEmail, postgresTime, processorTime } from './usage.ts';

const COUNT = size('BENCH_SIZE', 1_000);
const RUNS = size('BENCH_RUNS', 3);
/** Executions of each kind before the measurement. */
const WARM_UP_COUNT = 100;
/** The same number as the relay's. */
const MAX_CONCURRENT_STARTS = 100;
const STUCK_AFTER_MS = 180_000;
const WORKER = fileURLToPath(new URL('floor-worker.ts', import.meta.url));
/** Task queues. With one queue for both, the server would pass the activity with the workflow's first response. */
const WORKFLOWS = 'floor';
const ACTIVITIES = 'floor-activities';

/**
 * Measures messages that have their own workflow, beside a minimal workflow with an activity on the same server. Time is
 * measured from the first request to the end of the last workflow. The provider does not report, since reports are not part
 * of it.
 */
export async function floor(): Promise<void> {
  const options = { env: { EMAIL_PROVIDERS: 'postmark', WORKFLOW_STARTS_PER_SECOND: '1000000' }, reports: false };
  const rows = await withStack(options, async (stack, _pool, own) => {
    await setBehaviour(stack.inbox_url ?? '', { latency_ms: PROVIDER_LATENCY_MS });
    const worker = await startWorker(stack);
    const connection = await NativeConnection.connect({ address: stack.temporal_address });
    try {
      const processes = [...own, { 'empty worker': worker.pid ?? 0 }];
      return await compare(stack, processes, new Client({ connection }));
    } finally {
      await connection.close();
      await endWorker(worker);
    }
  });
  report('floor', 'workflows from start to end', rows, {
    workflows: COUNT,
    runs: RUNS,
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

async function startWorker({ temporal_address: address }: DevFile) {
  const worker = fork(WORKER, [address, WORKFLOWS, ACTIVITIES], { execArgv: ['--import', 'tsx'] });
  const [code] = (await Promise.race([once(worker, 'message'), once(worker, 'exit')])) as [unknown];
  if (code !== 'ready') throw new Error(`the worker of empty workflows ended with ${String(code)}`);
  return worker;
}

async function endWorker(worker: ChildProcess): Promise<void> {
  if (!worker.connected) return;
  worker.disconnect();
  await once(worker, 'exit');
}

async function compare(stack: DevFile, processes: readonly Processes[], client: Client) {
  const empty = (what: string, type: string, activities: string) => ({
    what,
    type,
    begin: startEmpty(client, type, activities),
  });
  const kinds = [
    empty('empty workflow, empty activity', 'nothing', WORKFLOWS),
    empty('the same, activity in a queue of its own', 'nothing', ACTIVITIES),
    empty('the same, local activity', 'nothingLocally', WORKFLOWS),
    { what: 'single email', type: 'deliverEmail', begin: (count: number) => postSome(stack, count) },
  ].map((kind) => ({ ...kind, runs: [] as Row[] }));
  const measure = async ({ what, type, begin }: (typeof kinds)[number], count: number): Promise<Row> => {
    const before = await countCompleted(client, type);
    const usedBefore = await usedTime(processes);
    const began = performance.now();
    await begin(count);
    await untilEnded(client, type, before + count);
    const rate = count / ((performance.now() - began) / 1_000);
    return { what, '/s': rate, ...perEmail(usedBefore, await usedTime(processes), count) };
  };
  for (const kind of kinds) await measure(kind, WARM_UP_COUNT);
  // Kinds alternate, so that a temporary slowdown of the machine affects all of them.
  for (let run = 0; run < RUNS; run++) {
    for (const kind of kinds) kind.runs.push(await measure(kind, COUNT));
  }
  const rows = kinds.map(({ runs }) => medians(runs));
  const least = Number(rows[0]?.['/s']);
  return rows.map((row) => ({ ...row, 'of the floor': Number(row['/s']) / least }));
}

async function usedTime(processes: readonly Processes[]) {
  return { ...(await processorTime(processes)), ...(await postgresTime(processes[0]?.postgres)) };
}

/** Starts empty workflows. @param activities the task queue of their activity */
function startEmpty({ workflow }: Client, type: string, activities: string) {
  const options = { taskQueue: WORKFLOWS, args: [activities] };
  return async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= MAX_CONCURRENT_STARTS) {
      const starts = Array.from({ length: Math.min(MAX_CONCURRENT_STARTS, left) }, () =>
        workflow.start(type, { ...options, workflowId: randomUUID() }),
      );
      await Promise.all(starts);
    }
  };
}

async function countCompleted({ workflow }: Client, type: string): Promise<number> {
  return (await workflow.count(`WorkflowType = '${type}' AND ExecutionStatus = 'Completed'`)).count;
}

async function untilEnded(client: Client, type: string, count: number): Promise<void> {
  const from = performance.now();
  while ((await countCompleted(client, type)) < count) {
    if (performance.now() - from > STUCK_AFTER_MS) throw new Error(`workflows ${type} are stuck`);
    await sleep(100);
  }
}
