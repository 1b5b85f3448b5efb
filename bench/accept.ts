import { repeat } from './figures.ts';
import { postSingles } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import { perEmail, processorTime } from './usage.ts';

const CONNECTIONS = [1, 32, 128];
const RUNS = size('BENCH_RUNS', 3);
const SECONDS = size('BENCH_SECONDS', 8);

/** Measures how fast single emails are accepted without Temporal, so that none is sent at the same time. */
export async function accept(): Promise<void> {
  const rows = await withStack({ without: ['temporal', 'worker'] }, async (stack, _pool, processes) => {
    await postSingles(stack, { connections: 32, seconds: 3 });
    const measured = [];
    for (const connections of CONNECTIONS) {
      const row = await repeat(RUNS, async () => {
        const before = await processorTime(processes);
        const { accepted, perSecond, p50, p99 } = await postSingles(stack, { connections, seconds: SECONDS });
        const used = perEmail(before, await processorTime(processes), accepted);
        const parts = { 'api µs': used['api µs'] ?? 0, 'postgres µs': used['postgres µs'] ?? 0 };
        return { 'accepted/s': perSecond, 'p50 ms': p50, 'p99 ms': p99, ...parts };
      });
      measured.push({ connections, ...row });
    }
    return measured;
  });
  report('accept', 'single emails accepted', rows, { runs: RUNS, seconds: SECONDS });
}
