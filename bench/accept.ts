import { postSingles } from './load.ts';
import { withStack } from './stack.ts';
import { median, printTable, quantile } from './table.ts';

const CONNECTIONS = [1, 32, 128];
const RUNS = 3;
const SECONDS = 5;

/** How fast single emails are accepted while they are also being sent, everything on this machine. */
export async function accept(): Promise<void> {
  const rows = await withStack({}, async (dev) => {
    await postSingles(dev, 8, 2);
    const measured = [];
    for (const connections of CONNECTIONS) {
      const runs = [];
      for (let run = 0; run < RUNS; run++) runs.push(await postSingles(dev, connections, SECONDS));
      measured.push({
        connections,
        'accepted/s': median(runs.map(({ latencies, seconds }) => latencies.length / seconds)),
        'p50 ms': median(runs.map(({ latencies }) => quantile(latencies, 0.5))),
        'p99 ms': median(runs.map(({ latencies }) => quantile(latencies, 0.99))),
      });
    }
    return measured;
  });
  printTable(`Single emails of 3 kB accepted; medians of ${RUNS} runs of ${SECONDS} s`, rows);
}
