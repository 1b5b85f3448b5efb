import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { PROVIDER_LATENCY_MS, postSingles, warmUp } from './load.ts';
import { report } from './report.ts';
import { byPart, type Cost, type Costs, type Plan, simulate, summary } from './simulation.ts';
import { size } from './sizes.ts';
import { type Processes, type StackOptions, withStack } from './stack.ts';
import { perEmail, processorTime } from './usage.ts';
import { untilQuiet } from './waiting.ts';

/** Single emails per second at which costs are measured. The machine is not saturated at this rate. */
const MEASURED_RATE = 500;
const SECONDS = size('BENCH_SECONDS', 20);
const SIMULATED_SECONDS = 30;
/** Duration of a call with 500 emails to a provider on the internet. */
const INTERNET_LATENCY_MS = 500;
/** The share of its processors that each part of a larger installation uses. */
const TARGET_UTILIZATION = 0.6;

/**
 * Measures the cost of a single email in each part until it is accepted, until it is sent, and for its report. A simulation
 * derives the capacity of this machine, which `sustained` verifies, and of larger installations.
 */
export async function capacity(): Promise<void> {
  // Nearly all emails share a workflow. An email with its own workflow costs many times as much; `floor` measures that.
  const env = { EMAIL_PROVIDERS: 'postmark', WORKFLOW_STARTS_PER_SECOND: '1' };
  const accepted = await measure({ env, without: ['temporal', 'worker'] });
  const sent = await measure({ env, reports: false });
  const reported = await measure({ env });
  const costs: Costs = { accepting: accepted, sending: minus(sent, accepted), reporting: minus(reported, sent) };
  const steps = Object.entries(costs).map(([step, cost]) => ({ step, ...(cost as Cost) }));
  report('capacity', `processor time of a single email at ${MEASURED_RATE} a second, µs`, steps, { seconds: SECONDS });

  const machine = [500, 750, 1_000, 1_250].map((rate) =>
    simulated(costs, 'this machine', { rate, processors: 2, workers: 1, latency: PROVIDER_LATENCY_MS }),
  );
  const larger = [1_000, 3_000, 10_000].map((rate) => {
    const { processors, workers } = plan(costs, rate);
    return simulated(costs, describe(processors, workers), { rate, processors, workers, latency: INTERNET_LATENCY_MS });
  });
  report('simulation', 'single emails with their reports, simulated', [...machine, ...larger], {
    seconds: SIMULATED_SECONDS,
  });
}

async function measure(options: StackOptions): Promise<Cost> {
  return withStack(options, async (stack, pool, processes) => {
    await warmUp(stack, 32, 3);
    return measureLoad(stack, pool, processes, !options.without);
  });
}

async function measureLoad(
  stack: DevFile,
  pool: Pool,
  processes: readonly Processes[],
  isSent: boolean,
): Promise<Cost> {
  const load = { load: process.pid };
  if (isSent) await untilQuiet(pool);
  const before = await processorTime([...processes, load]);
  const { accepted } = await postSingles(stack, { connections: 32, seconds: SECONDS, rate: MEASURED_RATE });
  const after = await processorTime([load]);
  if (isSent) await untilQuiet(pool);
  const used = perEmail(before, { ...(await processorTime(processes)), ...after }, accepted);
  return byPart((part) => used[`${part} µs`] ?? 0);
}

/** Subtracts the costs of earlier steps from the cost of several steps. */
function minus(cost: Cost, before: Cost): Cost {
  return byPart((part) => Math.max(0, cost[part] - before[part]));
}

/** Returns the processors for a rate at which no part is saturated, and worker processes for the number of concurrent calls. */
function plan(costs: Costs, rate: number): Pick<Plan, 'workers'> & { readonly processors: Cost } {
  const processors = byPart((part) => {
    const cost = costs.accepting[part] + costs.sending[part] + costs.reporting[part];
    return Math.max(1, Math.ceil((cost * rate) / 1_000_000 / TARGET_UTILIZATION));
  });
  return { processors, workers: processors.worker };
}

function describe(processors: Cost, workers: number): string {
  const { api, postgres, worker, temporal } = processors;
  return `api ${api}, postgres ${postgres}, worker ${worker} (${workers} processes), temporal ${temporal}`;
}

function simulated(costs: Costs, processors: string, given: Omit<Plan, 'seconds'>) {
  const outcome = simulate(costs, { ...given, seconds: SIMULATED_SECONDS });
  return { processors, 'emails/s': given.rate, ...summary(outcome) };
}
