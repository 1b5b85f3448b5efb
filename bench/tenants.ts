import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { registerDomainForOperator } from '../src/accounts/domains.ts';
import { createOrganization } from '../src/accounts/organizations.ts';
import { ROUTES } from '../src/http/app.ts';
import { formatNumber } from '../src/lib/text.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { type Pool, queryValue } from '../src/store/postgres/pool.ts';
import { quantile } from './figures.ts';
import { email, headers } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';
import { CALLS, type Stored } from './tenant-calls.ts';
import { fillTenant } from './tenant-data.ts';

const ROWS = size('BENCH_ROWS', 2_000_000);
const SECONDS = size('BENCH_SECONDS', 5);
/** Calls of one route by the busy tenant at a time. */
const PARALLEL = 40;
const SEND_INTERVAL_MS = 50;
/** The maximum time until the statements of a route have ended after its calls. */
const MAX_SETTLE_MS = 60_000;

type Tenant = Pick<DevFile, 'base_url' | 'api_key' | 'from'>;

/**
 * Measures the sends of one organization while another one, whose tables are full, makes 40 parallel calls of each route of the API in
 * turn. Nothing is sent.
 */
export async function tenants(): Promise<void> {
  const rows = await withStack({ without: ['temporal', 'worker'] }, async (stack, pool) => {
    const stored = await fillTenant(stack, ROWS);
    const other = await addTenant(stack, pool);
    await sendMeanwhile(other, sleep(2_000));
    const measured: Row[] = [{ route: 'none', ...(await sendMeanwhile(other, sleep(SECONDS * 1_000))), ...NO_CALLS }];
    for (const [method, path] of ROUTES)
      measured.push(await measure(stack, other, pool, `${String(method)} ${path}`, stored));
    return measured.toSorted((one, two) => Number(two['send p99']) - Number(one['send p99']));
  });
  const title = `sends of one tenant, ms, while another makes ${PARALLEL} parallel calls of each route`;
  report('tenants', `${title}, with ${formatNumber(ROWS)} rows of statistics`, rows, { rows: ROWS, seconds: SECONDS });
}

const NO_CALLS = { calls: 0, refused: 0, 'call p50': 0 };

async function addTenant({ base_url }: DevFile, pool: Pool): Promise<Tenant> {
  const { id, api_key } = await createOrganization(pool, 'Other tenant');
  await registerDomainForOperator(pool, id, 'other.example.com', true);
  return { base_url, api_key, from: 'Other <hello@other.example.com>' };
}

async function measure(busy: Tenant, other: Tenant, pool: Pool, route: string, stored: Stored): Promise<Row> {
  const over = new AbortController();
  // Each call in progress listens to it.
  setMaxListeners(2 * PARALLEL, over.signal);
  const calls = Promise.all(Array.from({ length: PARALLEL }, () => callRepeatedly(busy, route, stored, over.signal)));
  const sends = await sendMeanwhile(
    other,
    sleep(SECONDS * 1_000).then(() => over.abort()),
  );
  const made = (await calls).flat();
  await settle(pool);
  const refused = made.filter(({ status }) => status === 503 || status === 429).length;
  const p50 = quantile(
    made.map(({ ms }) => ms),
    0.5,
  );
  return { route, ...sends, calls: made.length, refused, 'call p50': p50 };
}

/** Calls a route until the signal aborts, which also ends the last call. */
async function callRepeatedly(tenant: Tenant, route: string, stored: Stored, signal: AbortSignal) {
  const made: { status: number; ms: number }[] = [];
  const agent = new Agent({ connections: 1 });
  while (!signal.aborted) {
    const [method = ''] = route.split(' ');
    const { path, body } = (CALLS[route] as (typeof CALLS)[string])(stored);
    const from = performance.now();
    const status = await send(tenant, agent, { method, path, body, signal }).catch(() => undefined);
    if (status !== undefined) made.push({ status, ms: performance.now() - from });
  }
  await agent.destroy();
  return made;
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

async function send(tenant: Tenant, dispatcher: Agent, { method, path, body, signal }: Request): Promise<number> {
  const { authorization, ...type } = headers(tenant);
  const answer = await request(tenant.base_url + path, {
    method: method as 'GET',
    dispatcher,
    headers: { authorization, ...(body !== undefined && type) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  await answer.body.dump();
  return answer.statusCode;
}

/** Sends emails at an interval until the work ends, without waiting for earlier ones. @returns columns in milliseconds */
async function sendMeanwhile(tenant: Tenant, work: Promise<unknown>) {
  const agent = new Agent();
  const sends: Promise<{ status: number; ms: number }>[] = [];
  const body = email(tenant, 'single@example.net');
  const over = new AbortController();
  void work.then(() => over.abort());
  while (!over.signal.aborted) {
    const from = performance.now();
    const sending = send(tenant, agent, { method: 'POST', path: '/v1/emails', body });
    sends.push(sending.then((status) => ({ status, ms: performance.now() - from })));
    await sleep(SEND_INTERVAL_MS);
  }
  const answers = await Promise.all(sends);
  await agent.close();
  const times = answers.map(({ ms }) => ms);
  return {
    'send p50': quantile(times, 0.5),
    'send p99': quantile(times, 0.99),
    'send max': quantile(times, 1),
    failed: answers.filter(({ status }) => status !== 202).length,
  };
}

/** Waits until no statement of the API runs, so that a route does not slow down the next one. */
async function settle(pool: Pool): Promise<void> {
  const until = performance.now() + MAX_SETTLE_MS;
  for (let quietRounds = 0; quietRounds < 3 && performance.now() < until;) {
    const running = await queryValue<number>(
      pool,
      `SELECT count(*)::int FROM pg_stat_activity WHERE application_name LIKE 'sendwright api%' AND state <> 'idle'`,
    );
    quietRounds = running === 0 ? quietRounds + 1 : 0;
    await sleep(100);
  }
}
