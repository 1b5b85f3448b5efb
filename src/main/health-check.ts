import { parseArgs } from 'node:util';
import { readSettings } from './env.ts';
import { endWith } from './process.ts';

/**
 * Asks the process of this container how it is, and ends with 0 when it is well: for images that hold no `curl`. The
 * API is asked whether it is ready to serve, a worker (`--worker`) whether it works.
 */
const ANSWER_WITHIN = 3_000;

const { PORT, METRICS_PORT } = readSettings();
const { values } = parseArgs({ options: { worker: { type: 'boolean', default: false } } });
if (values.worker && METRICS_PORT === undefined) endWith('a worker is asked at METRICS_PORT, which is not set');
const url = `http://127.0.0.1:${values.worker ? METRICS_PORT : PORT}/readyz`;
try {
  const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN) });
  if (!ok) endWith(`${url} answered ${status}`);
} catch (error) {
  endWith(`${url} does not answer: ${(error as Error).message}`);
}
