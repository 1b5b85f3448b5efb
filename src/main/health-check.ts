import { get } from 'node:http';
import { parseArgs } from 'node:util';

/**
 * The health check of a container, for images without `curl`. Exits with 0 if `/readyz` at `PORT` returns 200, or with
 * `--worker` at `METRICS_PORT`. It runs every few seconds in each container, so it loads neither the settings nor `fetch`,
 * which would double its cost.
 */
const TIMEOUT_MS = 3_000;

const { PORT, METRICS_PORT } = process.env;
const { values } = parseArgs({ options: { worker: { type: 'boolean', default: false } } });
const port = values.worker ? METRICS_PORT : PORT || '3000';
if (!port) fail('METRICS_PORT is missing: the port at which a worker is asked, for example METRICS_PORT=9464');
const url = `http://127.0.0.1:${port}/readyz`;
get(url, { timeout: TIMEOUT_MS }, ({ statusCode }) => {
  if (statusCode !== 200) fail(`${url} answered ${statusCode}`);
  process.exit(0);
})
  .on('timeout', () => fail(`${url} did not answer within ${TIMEOUT_MS} ms`))
  .on('error', (error) => fail(`${url} does not answer: ${error.message}`));

function fail(reason: string): never {
  console.error(reason);
  process.exit(1);
}
