import { Pool } from 'undici';
import type { DevFile } from '../src/main/embedded/dev-file.ts';

/** Milliseconds of each request that was answered 202, and the seconds that all of them took. */
export interface Load {
  readonly latencies: readonly number[];
  readonly seconds: number;
}

/** An email of about 3 kB. */
export function email(dev: DevFile, to: string) {
  return {
    from: dev.from,
    to,
    subject: 'Your receipt',
    html: `<p>Thank you.</p>${'<p>A line of an email that is neither short nor long.</p>'.repeat(40)}`,
    text: 'Thank you. '.repeat(40),
    tags: [{ name: 'kind', value: 'receipt' }],
  };
}

/** Posts single emails over kept connections, each with one request under way, for so many seconds. */
export async function postSingles(dev: DevFile, connections: number, seconds: number): Promise<Load> {
  const pool = new Pool(dev.base_url, { connections, pipelining: 1 });
  const latencies: number[] = [];
  const began = performance.now();
  const until = began + seconds * 1_000;
  let count = 0;
  const post = async () => {
    while (performance.now() < until) {
      const body = JSON.stringify(email(dev, `person-${++count}@example.net`));
      const from = performance.now();
      const response = await pool.request({
        path: '/v1/emails',
        method: 'POST',
        headers: { authorization: `Bearer ${dev.api_key}`, 'content-type': 'application/json' },
        body,
      });
      const text = await response.body.text();
      if (response.statusCode !== 202) throw new Error(`answered ${response.statusCode}: ${text}`);
      latencies.push(performance.now() - from);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, post));
  } finally {
    await pool.destroy();
  }
  return { latencies, seconds: (performance.now() - began) / 1_000 };
}
