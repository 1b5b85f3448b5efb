import { storeManyEmails } from '../dev/fixtures/many-emails.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { STATES } from '../src/domain/statistics.ts';
import { makePool } from '../src/store/postgres/pool.ts';
import { CHAT, DELIVERY, DOMAIN, ENDPOINT, KEY, SMS, type Stored } from './tenant-calls.ts';

/** Emails, deliveries, suppressions and other rows for each of these rows of statistics. */
const STATISTICS_ROWS_EACH = 10;
const TAGS = 10_000;
const MAX_OBJECTS = 100;

/**
 * Fills the tables that a tenant can grow, for the organization of a new stack: `rows` rows of statistics with 10,000 tags, a tenth as
 * many emails, chat-app messages, SMS, deliveries and suppressions, and keys and domains up to their limits.
 */
export async function fillTenant(stack: DevFile, rows: number): Promise<Stored> {
  // These statements take longer than the service's timeouts allow.
  const url = `${stack.database_url}?statement_timeout=3600000&query_timeout=3600000`;
  const pool = makePool(url, 'bench', 1, () => undefined);
  const orgId = stack.organization_id;
  const others = Math.ceil(rows / STATISTICS_ROWS_EACH);
  const first = Date.now() - 86_400_000;
  await storeManyEmails(pool, others, orgId, { first, apart: Math.max(1, Math.floor(80_000_000 / others)) });
  await pool.query(STATISTICS, [orgId, Math.ceil(rows / TAGS)]);
  for (const statement of MANY) await pool.query(statement, [orgId, others]);
  for (const statement of FEW) await pool.query(statement, [orgId, MAX_OBJECTS]);
  await pool.query('VACUUM ANALYZE');
  const { rows: found } = await pool.query<{ id: string; batch_id: string }>(
    'SELECT id, batch_id FROM emails WHERE org_id = $1 AND batch_id IS NOT NULL LIMIT 1',
    [orgId],
  );
  await pool.end();
  const [email] = found;
  if (!email) throw new Error('no email of a batch was stored');
  return { emailId: email.id, batchId: email.batch_id, from: stack.from, tagName: 'kind' };
}

const OTHER_STATES = STATES.filter((state) => state !== 'accepted');
const STATISTICS = `
  INSERT INTO stat_totals (org_id, channel, dimension, step, at, key, accepted, ${OTHER_STATES.join()})
  SELECT $1, 'email', 'tag:k', 'hour', date_trunc('hour', now()) - hour * interval '1 hour', 'v' || key, key % 97 + 1,
         ${OTHER_STATES.map(() => '1').join()}
  FROM generate_series(0, $2::int - 1) AS hour, generate_series(1, ${TAGS}) AS key`;

const messages = (channel: string, id: string) => `
  INSERT INTO chat_messages (id, org_id, number_id, "from", "to", country, type, content, status, created_at, last_event_at, look_at, channel)
  SELECT '${id}' || n, $1, 'none', '+447900000001', '+14165550123', 'CA', 'text', '{"text": "Hi."}', 'delivered',
         now() - n * interval '1 ms', now(), NULL, '${channel}'
  FROM generate_series(1, $2::int) AS n`;

const MANY = [
  messages('chatapp', CHAT.slice(0, -1)),
  messages('sms', SMS.slice(0, -1)),
  `INSERT INTO suppressions (id, org_id, email, origin) SELECT 'sup_' || n, $1, 's' || n || '@example.net', 'manual' FROM generate_series(1, $2::int) AS n`,
  `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) SELECT '${ENDPOINT}', $1, 'https://example.com/hook', '{}', '\\x00' WHERE $2 > 0`,
  `INSERT INTO webhook_events (id, org_id, type, created_at, data)
   SELECT 'evt_bench_' || n, $1, 'webhook.test', now() - n * interval '1 ms', '{"webhookId": "${ENDPOINT}"}' FROM generate_series(1, $2::int) AS n`,
  `INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, status, created_at)
   SELECT '${DELIVERY.slice(0, -1)}' || n, '${ENDPOINT}', 'evt_bench_' || n, 'webhook.test', CASE WHEN $1 = '' THEN 'failed' ELSE 'succeeded' END, now() - n * interval '1 ms'
   FROM generate_series(1, $2::int) AS n`,
  `INSERT INTO audit_log (id, org_id, actor_kind, actor_id, action) SELECT 'aud_bench_' || n, $1, 'system', 'bench', 'bench' FROM generate_series(1, $2::int) AS n`,
];

const FEW = [
  `INSERT INTO api_keys (id, org_id, preset, sha256) SELECT '${KEY.slice(0, -1)}' || n, $1, 'read_only', sha256(n::text::bytea) FROM generate_series(1, $2::int) AS n`,
  `INSERT INTO domains (id, org_id, name, status) SELECT '${DOMAIN.slice(0, -1)}' || n, $1, 'bench' || n || '.example', 'failed' FROM generate_series(1, $2::int) AS n`,
];
