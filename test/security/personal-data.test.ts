import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECIPIENT_TEXTS } from '../../src/store/upkeep/recipient-texts.ts';
import { useDatabase } from '../support/database.ts';

/**
 * How personal data of recipients leaves a table: when (its retention), and how one recipient is erased from it. A table that holds
 * none has the reason instead.
 */
type Handling = { readonly retention: string; readonly erasure: string } | { readonly holdsNone: string };

const RECORDS = 'EMAIL_RETENTION_DAYS';
const CONTENT = 'BODY_RETENTION_DAYS';
const ERASURE = 'POST /v1/erasures';
const ids = { holdsNone: 'ids, times and counts' };
const secrets = { holdsNone: 'keys and secrets of an organization' };
const account = { holdsNone: 'users and administrators of the organization, not recipients' };
const figures = { holdsNone: 'figures of tags, keys and sender domains, which customers name' };

const TABLES: Readonly<Record<string, Handling>> = {
  emails: { retention: RECORDS, erasure: ERASURE },
  email_bodies: { retention: CONTENT, erasure: 'encrypted; erased for a recipient alone' },
  email_events: { retention: RECORDS, erasure: ERASURE },
  email_recipients: { retention: RECORDS, erasure: ERASURE },
  email_tags: { holdsNone: 'hashes of tags, which customers name' },
  email_terms: { retention: RECORDS, erasure: 'hashes; the address moves to the placeholder' },
  chat_messages: { retention: RECORDS, erasure: ERASURE },
  chat_events: { retention: RECORDS, erasure: ERASURE },
  message_tags: { holdsNone: 'tags, which customers name' },
  attempts: { retention: RECORDS, erasure: ERASURE },
  attachments: { retention: RECORDS, erasure: 'file names stay; files are deleted for a recipient alone' },
  chat_contacts: { retention: 'as long as the organization: an open customer-service window', erasure: ERASURE },
  chat_inbound: { retention: '30 days', erasure: ERASURE },
  sms_opt_outs: { retention: 'as long as the organization: a choice of the recipient', erasure: ERASURE },
  sms_received: { holdsNone: 'random ids of Twilio' },
  suppressions: { retention: 'as long as the organization: a choice of the recipient', erasure: ERASURE },
  provider_list_removals: { retention: 'until the provider has removed the address', erasure: ERASURE },
  erased_recipients: { holdsNone: 'keyed hashes' },
  webhook_events: { retention: '30 days', erasure: ERASURE },
  webhook_attempts: { retention: '30 days', erasure: 'answers of customers, which are not searched' },
  webhook_deliveries: ids,
  provider_callbacks: { retention: '30 days', erasure: ERASURE },
  idempotency_keys: { retention: '24 hours', erasure: ERASURE },
  audit_log: { retention: 'as long as the organization: evidence', erasure: ERASURE },
  held_bodies: ids,
  outbox: ids,
  batches: ids,
  batch_moves: ids,
  expiring_partitions: ids,
  file_reservations: ids,
  search_ranges: ids,
  postgres_timeline: { holdsNone: 'ids of Postgres servers' },
  api_requests: { holdsNone: 'paths without the values of their parameters' },
  account_links: account,
  api_keys: secrets,
  data_keys: secrets,
  webhook_endpoints: secrets,
  chat_numbers: { holdsNone: 'numbers of the organization' },
  sms_senders: { holdsNone: 'numbers of the organization' },
  chat_templates: { holdsNone: 'templates of the organization' },
  domains: { holdsNone: 'domains of the organization' },
  provider_domains: { holdsNone: 'domains of organizations' },
  invitations: account,
  memberships: account,
  oidc_identities: account,
  organizations: account,
  password_resets: account,
  recovery_codes: account,
  second_factors: account,
  sessions: account,
  sign_in_attempts: account,
  sign_in_failures: account,
  users: account,
  email_hours: figures,
  email_moves: figures,
  monthly_usage: figures,
  rate_debts: figures,
  stat_additions: figures,
  stat_backfills: figures,
  stat_totals: figures,
  stored_bytes: figures,
  tag_additions: figures,
  tag_counts: figures,
  migrations: { holdsNone: 'names of migrations' },
  provider_pauses: { holdsNone: 'answers about an account of a provider' },
  relay_lease: { holdsNone: 'random ids of processes' },
  upkeep_tasks: { holdsNone: 'names of tasks' },
};

const { pool } = await useDatabase();

test('each table with text has a retention and an erasure, or holds no data of recipients', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT DISTINCT relname AS name
     FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid JOIN pg_type ON pg_type.oid = atttypid
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0
       AND typname IN ('text', 'varchar', 'json', 'jsonb', 'bytea', '_text', '_jsonb', '_bytea', 'inet') ORDER BY 1`,
  );
  assert.ok(rows.length > 50, `${rows.length} tables`);
  const undeclared = rows.map(({ name }) => name).filter((name) => !(name in TABLES));
  assert.deepEqual(undeclared, [], 'declare how data of recipients leaves these tables');
});

test('erasures are repeated after a restore in each table that they erase from', () => {
  // What a user has written is erased with the event of its receipt.
  const erased = Object.entries(TABLES).filter(
    ([name, handling]) => 'erasure' in handling && handling.erasure === ERASURE && name !== 'chat_inbound',
  );
  assert.deepEqual(Object.keys(RECIPIENT_TEXTS).sort(), erased.map(([name]) => name).sort());
});
