import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { quantile } from './figures.ts';
import type { Load, LoadOptions } from './load.ts';

/**
 * Makes requests evenly, so many a second: autocannon makes all of a second's at its beginning. While no connection is
 * free they come late, and their time counts from when they should have been made. None is made after the last second.
 * @throws Error when one is answered anything but 202
 */
export async function postAtRate(options: LoadOptions & { readonly rate: number }): Promise<Load> {
  const { url, headers, bodies, connections, seconds, rate } = options;
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections });
  const latencies: number[] = [];
  const began = performance.now();
  const end = began + seconds * 1_000;
  let next = 0;
  const connection = async () => {
    for (;;) {
      const number = next++;
      const at = began + (number * 1_000) / rate;
      const now = performance.now();
      if (at >= end || now >= end) return;
      if (at > now) await sleep(at - now);
      // A timer may be a little early.
      const from = Math.min(at, performance.now());
      const body = bodies[number % bodies.length] ?? '';
      const answer = await pool.request({ method: 'POST', path, headers, body });
      await answer.body.dump();
      if (answer.statusCode !== 202) throw new Error(`a request was answered ${answer.statusCode}`);
      latencies.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  const elapsed = Math.max(performance.now() - began, seconds * 1_000) / 1_000;
  await pool.close();
  return {
    accepted: latencies.length,
    perSecond: latencies.length / elapsed,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  };
}
