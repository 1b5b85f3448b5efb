import { postSingles } from './load.ts';
import { withStack } from './stack.ts';
import { median, printTable } from './table.ts';

const CONNECTIONS = [1, 32, 128];
const RUNS = 3;
const SECONDS = 8;

/** How fast single emails are accepted while Temporal is away, so that nothing is sent meanwhile. */
export async function accept(): Promise<void> {
  const rows = await withStack({ without: ['temporal', 'worker'] }, async (stack) => {
    await postSingles(stack, { connections: 32, seconds: 3 });
    const measured = [];
    for (const connections of CONNECTIONS) {
      const runs = [];
      for (let run = 0; run < RUNS; run++) runs.push(await postSingles(stack, { connections, seconds: SECONDS }));
      measured.push({
        connections,
        'accepted/s': median(runs.map(({ perSecond }) => perSecond)),
        'p50 ms': median(runs.map(({ p50 }) => p50)),
        'p99 ms': median(runs.map(({ p99 }) => p99)),
      });
    }
    return measured;
  });
  printTable(`Single emails of 3 kB accepted; medians of ${RUNS} runs of ${SECONDS} s`, rows);
}
