import { request } from 'undici';
import { makeCursors } from '../src/http/cursor.ts';
import { wordsOf } from '../src/domain/email/search.ts';
import { parseTag } from '../src/domain/email/tag-filter.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { numberedId } from '../dev/fixtures/many-emails.ts';
import { quantiles } from './figures.ts';
import { acceptBatches } from './growth.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { BLOCK_SIZE, indexEmails } from '../src/upkeep/search-index.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import { storeYear } from './stored.ts';
import { formatNumber } from '../src/lib/text.ts';

/** The number of the first email of a batch of 5,000. */
const BATCH_START = 60_000;
/** Query parameters of a list, in the API's form. */
type Filter = Readonly<Record<string, string | readonly string[]>>;
/**
 * Frequent and rare filters, alone and combined; `storeManyEmails` describes the data. Parameters, tags and statuses are in
 * the API's order.
 */
const FILTERS: readonly Filter[] = [
  {},
  { status: 'delivered' },
  { status: 'complained' },
  { tag: ['kind:receipt'] },
  { tag: ['customer:c9000'] },
  { tag: ['customer:c7', 'kind:receipt'] },
  { tag: ['campaign:x5', 'plan:p3'] },
  { tag: ['kind:digest', 'plan:p3'] },
  { tag: ['kind:receipt'], status: 'delivered' },
  { tag: ['kind:receipt'], status: 'complained' },
  { tag: ['plan:p3'], status: 'failed' },
  { tag: ['customer:c9000'], status: 'bounced' },
  { tag: ['campaign:x5', 'plan:p3'], status: 'opened' },
  { batch_id: `bt_${BATCH_START}` },
  { batch_id: `bt_${BATCH_START}`, status: 'rejected' },
  { batch_id: `bt_${BATCH_START}`, tag: ['customer:c9000'], status: 'sent' },
  { to: 'user0@mail.example' },
  { to: 'user9999@corp9999.example' },
  { to: 'nobody@mail.example' },
  { to: '@mail.example' },
  { to: '@corp9999.example' },
  { from: '@acme.example' },
  { subject: 'receipt' },
  { subject: 'digest weekly' },
  { subject: '4711' },
  { subject: 'digest receipt' },
  { to: 'user0@mail.example', subject: 'alert' },
  { subject: 'receipt', status: 'complained' },
  { to: '@mail.example', tag: ['customer:c9000'] },
  { status: ['bounced', 'complained'] },
  { status: ['bounced', 'failed'], subject: 'shipped' },
  { bounce_reason: 'mailbox_not_found' },
];
const ROWS = size('BENCH_ROWS', 5_000_000);
const REQUESTS = 300;
const SECRET_KEY = 'the secret key of a service that is measured';

/**
 * Measures the response time of a page of each kind of list with emails of a year stored, four in five of them of the caller
 * and the others of twenty organizations; and the acceptance of a batch, compared with an empty database. Nothing is sent:
 * the stored emails have no workflow.
 */
export async function lists(): Promise<void> {
  const options = { env: { SECRET_KEY }, without: ['temporal', 'worker'] } as const;
  const empty = await withStack(options, (stack) => acceptBatches(stack, 0));
  const [rows, full, indexing] = await withStack(options, async (stack, pool) => {
    const times = await storeYear(stack, pool, ROWS);
    const indexed = await timeIndexing(pool);
    const measured = [];
    for (const filter of FILTERS) measured.push(await measure(stack, filter, times));
    measured.push(await measureTags(stack));
    return [measured, await acceptBatches(stack, ROWS), indexed] as const;
  });
  const title = `pages of 50 out of ${formatNumber(ROWS)} emails, one request at a time, ms`;
  report('lists', title, rows, { emails: ROWS, requests: REQUESTS });
  report('search-index', 'emails indexed for search, without pauses', [indexing], { emails: ROWS });
  report('growth', 'a batch accepted on top of what is stored', [empty, full], {});
}

async function measure(dev: DevFile, filter: Filter, times: { readonly first: number; readonly apart: number }) {
  const parameters = Object.entries(filter).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const query = new URLSearchParams(parameters).toString();
  const { tag = [], status = null, batch_id = null, ...others } = filter;
  const { subject } = others;
  const filters = {
    ...{ tags: [tag].flat().map(parseTag), status, batch_id, ...others },
    ...(typeof subject === 'string' && { subject: wordsOf(subject) }),
  };
  const listing = { list: 'emails', orgId: dev.organization_id, filters };
  const { seal } = makeCursors(SECRET_KEY);
  /** Returns a cursor at a random position in the list, or in the batch, whose emails have the same time. */
  const anywhere = () => {
    const at = times.first + Math.floor(times.apart * (batch_id === null ? Math.random() * ROWS : BATCH_START));
    const id = numberedId(at, BATCH_START + Math.floor(Math.random() * 5_000));
    return seal(listing, { created_at: new Date(at).toISOString(), id });
  };
  return {
    list: decodeURIComponent(query).replaceAll('&', ' ') || 'all',
    ...(await time('first', dev, () => `/v1/emails?${query}`)),
    ...(await time('deep', dev, () => `/v1/emails?${query && `${query}&`}cursor=${anywhere()}`)),
  };
}

/** Measures the indexing of all emails. */
async function timeIndexing(pool: Pool) {
  const began = performance.now();
  const emails = await indexEmails(pool, { blockSize: BLOCK_SIZE, settledMs: 0 });
  const seconds = (performance.now() - began) / 1_000;
  await pool.query('VACUUM ANALYZE email_terms');
  const { rows } = await pool.query<{ bytes: string }>(
    `SELECT sum(pg_total_relation_size(inhrelid)) AS bytes FROM pg_inherits WHERE inhparent = 'email_terms'::regclass`,
  );
  return { emails, seconds, 'µs each': (seconds * 1e6) / emails, 'bytes each': Number(rows[0]?.bytes) / emails };
}

async function measureTags(dev: DevFile) {
  return { list: 'tags', ...(await time('first', dev, () => '/v1/emails/tags')) };
}

async function time(name: string, { base_url, api_key }: DevFile, path: () => string) {
  const latencies: number[] = [];
  for (let n = 0; n < REQUESTS; n++) {
    const from = performance.now();
    const { statusCode, body } = await request(base_url + path(), { headers: { authorization: `Bearer ${api_key}` } });
    const text = await body.text();
    latencies.push(performance.now() - from);
    if (statusCode !== 200) throw new Error(`answered ${statusCode}: ${text}`);
  }
  return quantiles(name, latencies);
}
