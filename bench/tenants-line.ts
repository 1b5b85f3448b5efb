import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { SMTPServer } from 'smtp-server';
import { issueKeyForOperator } from '../src/accounts/keys.ts';
import { newId } from '../src/lib/ids.ts';
import { mapConcurrently } from '../src/lib/map-concurrently.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { insertDomain } from '../src/store/domains/domains.ts';
import { insertOrganization } from '../src/store/accounts/organizations.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { quantile } from './figures.ts';
import { call, email } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';

const RUNS = size('BENCH_RUNS', 1);
/** Emails of the organization whose emails get no reply, and the seconds of measurement from then on. */
const PHASES = [
  [40, 30],
  [300, 45],
] as const;
const ALONE_MS = 10_000;
const INTERVAL_MS = 250;
const HANGING_DOMAIN = 'hanging.example';

/** Measures one organization's email by SMTP while the server leaves another organization's email without a reply. */
export async function tenantsLine(): Promise<void> {
  const rows = [];
  for (let run = 0; run < RUNS; run++) rows.push(...(await measureOnce()));
  report(
    'tenants-line',
    'from 202 of an organization’s email to the SMTP server, beside another’s unanswered email',
    rows,
    {
      runs: RUNS,
    },
  );
}

async function measureOnce() {
  const server = await startSmtp();
  const env = { EMAIL_PROVIDERS: 'smtp', SMTP_URL: `smtp://127.0.0.1:${server.port}` };
  try {
    return await withStack({ env, fleets: ['all'], reports: false }, async (stack, pool) => {
      const hanging = await addOrganization(stack, pool);
      const rows = [
        { meanwhile: 'nothing', ...(await measure(stack, server, ALONE_MS)), ...(await state(pool, server)) },
      ];
      for (const [count, seconds] of PHASES) {
        const posted = mapConcurrently(Array.from({ length: count }), 32, () =>
          call(hanging, 'POST', '/v1/emails', email(hanging, 'person@example.net')),
        );
        const times = await measure(stack, server, seconds * 1_000);
        await posted;
        rows.push({ meanwhile: `${count} more unanswered`, ...times, ...(await state(pool, server)) });
      }
      return rows;
    });
  } finally {
    await server.close();
  }
}

/** Returns what became of the unanswered emails so far. */
async function state(pool: Pool, server: Awaited<ReturnType<typeof startSmtp>>) {
  const { rows } = await pool.query<{ failed: number; attempts: number }>(
    `SELECT count(*) FILTER (WHERE status = 'failed')::int AS failed,
            coalesce(max((SELECT count(*) FROM attempts WHERE message_id = email.id)), 0)::int AS attempts
     FROM emails AS email`,
  );
  const { failed = 0, attempts = 0 } = rows[0] ?? {};
  return { 'at the server': server.unanswered(), failed, 'most attempts': attempts };
}

/** Posts an email every INTERVAL_MS. @returns the times until the server has them; those that it does not have count as the rest */
async function measure(stack: DevFile, server: Awaited<ReturnType<typeof startSmtp>>, forMs: number) {
  const acceptedAt = new Map<string, number>();
  const endsAt = performance.now() + forMs;
  while (performance.now() < endsAt) {
    const { id } = await call<{ id: string }>(stack, 'POST', '/v1/emails', email(stack, 'single@example.net'));
    acceptedAt.set(id, performance.now());
    await sleep(INTERVAL_MS);
  }
  await sleep(5_000);
  const now = performance.now();
  const times = [...acceptedAt].map(([id, at]) => Math.max(0, (server.arrivedAt.get(id) ?? now) - at));
  const missing = [...acceptedAt.keys()].filter((id) => !server.arrivedAt.has(id)).length;
  const quantiles = { 'p50 ms': quantile(times, 0.5), 'p99 ms': quantile(times, 0.99), 'max ms': quantile(times, 1) };
  return { emails: times.length, missing, ...quantiles };
}

/** A server that gives no reply to email of HANGING_DOMAIN. */
async function startSmtp() {
  const arrivedAt = new Map<string, number>();
  let unanswered = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    socketTimeout: 600_000,
    onData(stream, _session, done) {
      let head = '';
      stream.on('data', (chunk: Buffer) => (head += head.length < 4_096 ? chunk.toString('latin1') : ''));
      stream.on('end', () => {
        const [, id = '', domain] = /^Message-ID: <([^@>]+)@([^>]+)>/im.exec(head) ?? [];
        if (domain === HANGING_DOMAIN) unanswered++;
        else {
          arrivedAt.set(id, performance.now());
          done();
        }
      });
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    arrivedAt,
    unanswered: () => unanswered,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Creates the organization whose email gets no reply. */
async function addOrganization(stack: DevFile, pool: Pool): Promise<DevFile> {
  const organization_id = newId('org');
  await insertOrganization(pool, organization_id, 'Hanging');
  await insertDomain(pool, newId('dm'), organization_id, HANGING_DOMAIN, true);
  const { api_key } = await issueKeyForOperator(pool, organization_id, 'full_access', []);
  return { ...stack, organization_id, api_key, from: `hanging@${HANGING_DOMAIN}` };
}
