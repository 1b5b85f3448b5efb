import type { Pool } from '../../src/store/postgres/pool.ts';
import { foldTags } from '../../src/store/emails/tags.ts';

/** Emails per statement. */
const CHUNK = 50_000;

/** The organization that most of the emails belong to, unless another one is named. */
export const LARGE = 'org_large';
/** The time of the first email; each is half a second younger than the one before, those of a batch are of one instant. */
export const FIRST_AT = Date.UTC(2026, 0, 1);
export const APART = 500;

/**
 * Fills an empty database with emails as a busy service has them: 80 % of one organization and the rest of twenty, 30 % in
 * batches of 5,000 (`bt_0`, `bt_20000`, …), none to three tags, a few of them frequent (`kind:receipt` 50 %) and many rare
 * (`customer:c0` 2 % … `customer:c9999`), six statuses that are common and seven that are not.
 */
export async function storeManyEmails(pool: Pool, rows: number, orgId = LARGE): Promise<void> {
  for (let from = 0; from < rows; from += CHUNK) {
    await pool.query(STORE, [from, Math.min(from + CHUNK, rows) - 1, orgId]);
  }
  while ((await foldTags(pool, CHUNK)) > 0);
  await pool.query('ANALYZE');
}

const STORE = `
  WITH dice AS MATERIALIZED (
    SELECT n, floor(random() * 100) AS org, floor(random() * 1000) AS status, floor(random() * 100) AS tags,
           floor(random() * 6) AS kind, floor(power(random(), 3) * 10000) AS customer
    FROM generate_series($1::int, $2::int) AS n
  ), email AS MATERIALIZED (
    SELECT 'em_' || lpad(n::text, 26, '0') AS id,
      CASE WHEN n % 20000 < 5000 OR org < 75 THEN $3 ELSE 'org_' || n % 20 END AS org_id,
      CASE WHEN n % 20000 < 5000 THEN 'bt_' || n - n % 20000 END AS batch_id,
      timestamptz '2026-01-01T00:00Z' + interval '1 ms' * ${APART} * CASE WHEN n % 20000 < 5000 THEN n - n % 20000 ELSE n END
        AS created_at,
      CASE WHEN status < 600 THEN 'delivered' WHEN status < 780 THEN 'opened' WHEN status < 850 THEN 'clicked'
        WHEN status < 950 THEN 'sent' WHEN status < 970 THEN 'bounced' WHEN status < 980 THEN 'canceled'
        WHEN status < 985 THEN 'scheduled' WHEN status < 990 THEN 'failed' WHEN status < 993 THEN 'suppressed'
        WHEN status < 996 THEN 'delivery_delayed' WHEN status < 998 THEN 'queued' WHEN status < 999 THEN 'rejected'
        ELSE 'complained' END AS status,
      to_jsonb(array_remove(ARRAY[
        CASE WHEN tags >= 30 THEN jsonb_build_object('name', 'kind', 'value',
          (ARRAY['receipt', 'receipt', 'receipt', 'receipt', 'digest', 'alert'])[1 + kind]) END,
        CASE WHEN tags BETWEEN 60 AND 89 THEN jsonb_build_object('name', 'customer', 'value', 'c' || customer) END,
        CASE WHEN tags >= 90 THEN jsonb_build_object('name', 'plan', 'value', 'p' || customer::int % 30) END,
        CASE WHEN tags >= 90 THEN jsonb_build_object('name', 'campaign', 'value', 'x' || customer::int % 29) END
      ], NULL)) AS tags
    FROM dice
  ), tagged AS MATERIALIZED (
    SELECT id, org_id, created_at, name, value, tag_key(org_id, name, value) AS tag
    FROM email CROSS JOIN jsonb_to_recordset(tags) AS tag(name text, value text)
  ), bits AS MATERIALIZED (
    SELECT id, bit_or(tag_bits(tag)) AS tag_bits FROM tagged GROUP BY id
  ), labelled AS (
    INSERT INTO email_tags (tag, created_at, email_id, tag_bits)
    SELECT tag, created_at, id, tag_bits FROM tagged JOIN bits USING (id)
  ), counted AS (
    INSERT INTO tag_additions (org_id, name, value, emails)
    SELECT org_id, name, value, count(*) FROM tagged GROUP BY org_id, name, value
  )
  INSERT INTO emails (id, org_id, batch_id, "from", "to", subject, marketing, tags, tag_bits, headers, status, error,
                      bounce_reason, created_at, scheduled_at, last_event_at, workflow_id)
  SELECT id, org_id, batch_id, 'Acme <hello@acme.example>', jsonb_build_array(id || '@example.net'),
         'Your receipt is here', false, tags, coalesce(tag_bits, 0), '{}', status,
         CASE WHEN status IN ('failed', 'bounced') THEN 'the mailbox does not exist' END,
         CASE WHEN status = 'bounced' THEN 'mailbox_not_found' END, created_at,
         CASE WHEN status IN ('scheduled', 'canceled') THEN created_at + interval '1 day' END, created_at, id
  FROM email LEFT JOIN bits USING (id)`;
