import { createServer } from 'node:http';
import { request } from 'undici';
import type { Metrics } from '../../http/routes/health.ts';
import { type PoolCounts, watchDatabase, type WaitingInDatabase, watchPool } from '../../telemetry/gauges.ts';
import { startMetrics } from '../../telemetry/metrics.ts';

/** Milliseconds for which a page of metrics is good enough: nobody can keep us busy by asking for more. */
const FRESH = 1_000;
/** Milliseconds that Temporal's SDK gets to say its part. */
const PATIENCE = 1_000;

interface Sources {
  readonly pool: PoolCounts;
  /** What waits in the database, where this process is one to tell it. */
  readonly waiting?: () => Promise<WaitingInDatabase>;
  /** Where Temporal's SDK tells its own. */
  readonly sdk: string;
}

/** The metrics of this process, with those of Temporal's SDK, as one page. */
export function openMetrics({ pool, waiting, sdk }: Sources): Metrics {
  const { registry } = startMetrics();
  watchPool(registry, pool);
  if (waiting) watchDatabase(registry, waiting);
  let page: Promise<string> | undefined;
  let at = -Infinity;
  return {
    type: registry.contentType,
    text() {
      if (!page || performance.now() - at > FRESH) {
        at = performance.now();
        page = Promise.all([registry.metrics(), sdkMetrics(sdk)]).then((parts) => parts.join('\n'));
      }
      return page;
    },
  };
}

/** Temporal's SDK is native code, and serves its metrics itself. Without them the rest is still worth reading. */
async function sdkMetrics(address: string): Promise<string> {
  try {
    const { body } = await request(`http://${address}/metrics`, { signal: AbortSignal.timeout(PATIENCE) });
    return await body.text();
  } catch {
    return '';
  }
}

/**
 * Answers `/metrics`, and `/healthz` as long as this process lives, for a process that serves nothing else.
 * @param isReady whether it does its work; `/readyz` says so
 */
export async function serveMetrics(
  { type, text }: Metrics,
  { port, host }: { readonly port: number; readonly host: string },
  isReady: () => boolean,
): Promise<() => Promise<void>> {
  const status = (code: number, word: string) => ({
    code,
    type: 'application/json',
    body: JSON.stringify({ status: word }),
  });
  const answer = async (page: string | undefined) => {
    if (page === '/metrics') return { code: 200, type, body: await text() };
    if (page === '/healthz') return status(200, 'ok');
    if (page === '/readyz') return isReady() ? status(200, 'ok') : status(503, 'starting');
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
