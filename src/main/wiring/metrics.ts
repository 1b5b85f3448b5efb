import { createServer } from 'node:http';
import { request } from 'undici';
import type { Metrics } from '../../http/deps.ts';
import {
  type CallCounts,
  type DatabaseGauges,
  type PoolCounts,
  watchDatabase,
  watchPool,
  watchProviderLine,
} from '../../telemetry/gauges.ts';
import { cacheFor } from '../../lib/cached.ts';
import { startMetrics } from '../../telemetry/metrics.ts';

/** A page of metrics is cached for this time, so that frequent scrapes cost no more than one. */
const MAX_AGE_MS = 1_000;
const SDK_TIMEOUT_MS = 1_000;

interface Sources {
  readonly pool: PoolCounts;
  /** Set in processes that call providers. */
  readonly readLine?: () => readonly CallCounts[];
  /** Set in processes that report pending work in the database. */
  readonly readGauges?: () => Promise<DatabaseGauges>;
  /** `host:port` at which Temporal's SDK serves its metrics. */
  readonly sdk: string;
}

/** Serves the metrics of this process and of Temporal's SDK as one page. */
export function openMetrics({ pool, readLine, readGauges, sdk }: Sources): Metrics {
  const { registry } = startMetrics();
  watchPool(registry, pool);
  if (readLine) watchProviderLine(registry, readLine);
  if (readGauges) watchDatabase(registry, readGauges);
  const collect = async () => (await Promise.all([registry.metrics(), sdkMetrics(sdk)])).join('\n');
  return { type: registry.contentType, text: cacheFor(MAX_AGE_MS, collect) };
}

/**
 * Fetches the metrics of Temporal's SDK, which is native code and serves its own. If they are unavailable, the other metrics
 * are still returned.
 */
async function sdkMetrics(address: string): Promise<string> {
  try {
    const { body } = await request(`http://${address}/metrics`, { signal: AbortSignal.timeout(SDK_TIMEOUT_MS) });
    return await body.text();
  } catch {
    return '';
  }
}

/** Serves `/metrics`, `/healthz` and `/readyz` for a process that has no other HTTP server. */
export async function serveMetrics(
  { type, text }: Metrics,
  { port, host }: { readonly port: number; readonly host: string },
  isReady: () => Promise<boolean>,
): Promise<() => Promise<void>> {
  const status = (code: number, word: string) => ({ code, type: 'application/json', body: `{"status":"${word}"}` });
  const answer = async (page: string | undefined) => {
    if (page === '/metrics') return { code: 200, type, body: await text() };
    if (page === '/healthz') return status(200, 'ok');
    if (page === '/readyz') {
      return (await isReady().catch(() => false)) ? status(200, 'ok') : status(503, 'unavailable');
    }
    return status(404, 'not found');
  };
  const server = createServer(({ url }, response) => {
    answer(url)
      .catch(() => status(500, 'failed'))
      .then(({ code, type: contentType, body }) => response.writeHead(code, { 'content-type': contentType }).end(body))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}
