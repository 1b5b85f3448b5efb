import type { DevFile } from '../src/main/dev-file.ts';
import { findPages } from '../dev/fixtures/page-links.ts';
import { visitor, type Visitor } from '../dev/fixtures/visitor.ts';
import { storeManyEmails } from '../dev/fixtures/many-emails.ts';
import { quantile } from './figures.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import { formatNumber } from '../src/lib/text.ts';

/** Filtered lists, besides one address for each row of the route table; `storeManyEmails` describes the data. */
const NARROWED = [
  '/dashboard?range=30d',
  '/dashboard/emails?status=complained',
  '/dashboard/emails?tag=kind:receipt',
  '/dashboard/emails?tag=campaign:x5&tag=plan:p3&status=opened',
  '/dashboard/emails?batch_id=bt_60000',
  '/dashboard/emails?batch_id=bt_60000&status=rejected',
];
const ROWS = size('BENCH_ROWS', 1_000_000);
const WARM_UP_REQUESTS = 10;
const REQUESTS = 200;

/** Measures the response time of each page of the dashboard with many emails stored, four in five of them of its organization. */
export async function pages(): Promise<void> {
  const rows = await withStack({}, async (stack, pool) => {
    await storeManyEmails(pool, ROWS, stack.organization_id);
    for (const table of ['emails', 'email_tags']) await pool.query(`VACUUM ANALYZE ${table}`);
    return measure(stack);
  });
  const title = `pages of the dashboard with ${formatNumber(ROWS)} emails, signed in, one request at a time, ms`;
  report('pages', title, rows, { emails: ROWS, requests: REQUESTS });
}

async function measure({ base_url: url, dashboard_email: email, dashboard_password: password }: DevFile) {
  const member = visitor({ url });
  await member.signIn(email, password);
  const found = [...(await findPages(member))].map(([pattern, { path }]) => [pattern, path] as const);
  const measured = [];
  for (const [page, path] of [...found, ...NARROWED.map((path) => [path, path] as const)]) {
    measured.push({ page, ...(await time(member, path)) });
  }
  return measured;
}

async function time({ get }: Visitor, path: string) {
  const latencies: number[] = [];
  let size = 0;
  for (let n = -WARM_UP_REQUESTS; n < REQUESTS; n++) {
    const from = performance.now();
    const { status, html } = await get(path);
    if (n >= 0) latencies.push(performance.now() - from);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    size = html.length;
  }
  return {
    p50: quantile(latencies, 0.5),
    p95: quantile(latencies, 0.95),
    max: quantile(latencies, 1),
    kB: size / 1024,
  };
}
