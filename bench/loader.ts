import autocannon from 'autocannon';
import type { Load, LoadOptions } from './load.ts';
import { postAtRate } from './paced.ts';

/** The process that generates the load of one `postSingles` call. */
process.once('message', (options: LoadOptions) => {
  run(options).then(
    (load) => process.send?.(load, () => process.exit(0)),
    (error: unknown) => process.send?.({ error: String(error) }, () => process.exit(0)),
  );
});

async function run({ rate, ...options }: LoadOptions): Promise<Load> {
  if (rate !== undefined) return postAtRate({ ...options, rate });
  const { url, headers, bodies, connections, seconds } = options;
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    requests: bodies.map((body) => ({ method: 'POST', headers, body })),
  });
  const { errors, non2xx, requests, latency, duration } = result;
  if (errors > 0 || non2xx > 0) throw new Error(`${non2xx} requests were refused and ${errors} had no answer`);
  return {
    accepted: result['2xx'],
    perSecond: requests.total / duration,
    p50: latency.p50,
    p99: latency.p99,
  };
}
