import { request } from 'undici';
import { makeCursors } from '../src/http/cursor.ts';
import { parseTag } from '../src/domain/tag-filter.ts';
import type { DevFile } from '../src/main/embedded/dev-file.ts';
import { makePool } from '../src/store/pool.ts';
import { APART, FIRST_AT, storeManyEmails } from '../test/support/many-emails.ts';
import { withStack } from './stack.ts';
import { printTable, quantile } from './table.ts';

/** Frequent and rare, alone and together; `storeManyEmails` says what there is. Tags are in the API's order. */
const FILTERS: readonly { readonly tag?: readonly string[]; readonly status?: string; readonly batch_id?: string }[] = [
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
  { batch_id: 'bt_60000' },
  { batch_id: 'bt_60000', status: 'rejected' },
  { batch_id: 'bt_60000', tag: ['customer:c9000'], status: 'sent' },
];
const TIMES = 300;
const SECRET_KEY = 'the secret key of a service that is measured';

/** How fast a page of each kind of list is answered with so many emails stored, four in five of them the caller's. */
export async function lists({ rows = 1_000_000 }: { rows?: number } = {}): Promise<void> {
  const table = await withStack({ env: { SECRET_KEY } }, async (dev) => {
    const pool = makePool(dev.database_url, 'bench', 1, () => undefined);
    try {
      await storeManyEmails(pool, rows, dev.organization_id);
      for (const table of ['emails', 'email_tags']) await pool.query(`VACUUM ANALYZE ${table}`);
    } finally {
      await pool.end();
    }
    const measured = [];
    for (const filter of FILTERS) measured.push(await measure(dev, filter, rows));
    return [...measured, await measureTags(dev)];
  });
  printTable(`Pages of 50 out of ${rows.toLocaleString('en')} emails; ms over HTTP, one request at a time`, table);
}

async function measure(dev: DevFile, { tag = [], status, batch_id }: (typeof FILTERS)[number], rows: number) {
  const parameters = [...tag.map((text) => ['tag', text]), ['status', status], ['batch_id', batch_id]];
  const query = parameters.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`])).join('&');
  const filters = { tags: tag.map(parseTag), status: status ?? null, batch_id: batch_id ?? null };
  const listing = { list: 'emails', orgId: dev.organization_id, filters };
  const { seal } = makeCursors(SECRET_KEY);
  /** A cursor from anywhere in the list, or in the batch, whose emails are of one instant. */
  const anywhere = () => {
    const n = batch_id === undefined ? Math.random() * rows : 60_000;
    const id = `em_${String(60_000 + Math.floor(Math.random() * 5_000)).padStart(26, '0')}`;
    return seal(listing, { created_at: new Date(FIRST_AT + n * APART).toISOString(), id });
  };
  return {
    list: query.replaceAll('&', ' ') || 'all',
    ...(await time('first', dev, () => `/v1/emails?${query}`)),
    ...(await time('deep', dev, () => `/v1/emails?${query && `${query}&`}cursor=${anywhere()}`)),
  };
}

async function measureTags(dev: DevFile) {
  return { list: 'tags', ...(await time('first', dev, () => '/v1/emails/tags')) };
}

async function time(name: string, { base_url, api_key }: DevFile, path: () => string) {
  const latencies: number[] = [];
  for (let n = 0; n < TIMES; n++) {
    const from = performance.now();
    const { statusCode, body } = await request(base_url + path(), { headers: { authorization: `Bearer ${api_key}` } });
    const text = await body.text();
    latencies.push(performance.now() - from);
    if (statusCode !== 200) throw new Error(`answered ${statusCode}: ${text}`);
  }
  return {
    [`${name} p50`]: quantile(latencies, 0.5),
    [`${name} p99`]: quantile(latencies, 0.99),
    [`${name} max`]: quantile(latencies, 1),
  };
}
