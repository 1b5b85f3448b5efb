import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { quantile } from './figures.ts';
import type { Load, LoadOptions } from './load.ts';

/** A paced load. With `countRefused`, it goes on after a response other than 202. */
export interface PacedOptions extends LoadOptions {
  readonly rate: number;
  readonly countRefused?: () => void;
}

/**
 * Sends requests evenly at a rate; autocannon would send all of a second's at its beginning. Requests without a free
 * connection are sent late, and their time is measured from the planned start. None is sent after the last second.
 * @throws Error if a response is not 202 and refused ones are not counted
 */
export async function postAtRate(options: PacedOptions): Promise<Load> {
  const { url, headers, bodies, connections, seconds, rate, countRefused } = options;
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
      // A timer may fire slightly early.
      const from = Math.min(at, performance.now());
      const body = bodies[number % bodies.length] ?? '';
      const answer = await pool.request({ method: 'POST', path, headers, body });
      await answer.body.dump();
      if (answer.statusCode === 202) latencies.push(performance.now() - from);
      else if (countRefused) countRefused();
      else throw new Error(`a request was answered ${answer.statusCode}`);
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
