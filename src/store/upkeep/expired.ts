import { type Db, execute } from '../postgres/pool.ts';

/** Rows that expire some time after `since`. */
interface Expiring {
  readonly key: string;
  /** Indexed, unless the table is small or `order` is set. */
  readonly since: string;
  readonly after: string;
  /** An indexed column with the same order as `since`. */
  readonly order?: string;
}

const EXPIRING = {
  idempotency_keys: { key: 'org_id, key', since: 'created_at', after: '24 hours' },
  provider_callbacks: { key: 'id', since: 'received_at', after: '720 hours', order: 'id' },
  chat_inbound: { key: 'id', since: 'received_at', after: '720 hours', order: 'id' },
  sms_received: { key: 'provider_message_id', since: 'received_at', after: '720 hours' },
  sign_in_attempts: { key: 'kind, subject', since: 'expires_at', after: '0' },
  sign_in_failures: { key: 'subject', since: 'since', after: '15 minutes' },
  sessions: { key: 'sha256', since: 'expires_at', after: '0' },
  password_resets: { key: 'sha256', since: 'expires_at', after: '0' },
  account_links: { key: 'email_id', since: 'expires_at', after: '0' },
  invitations: { key: 'id', since: 'expires_at', after: '0' },
} satisfies Record<string, Expiring>;
export type ExpiringTable = keyof typeof EXPIRING;

/** Deletes at most `limit` expired rows of a table, oldest first. */
export function deleteExpired(db: Db, table: ExpiringTable, limit: number): Promise<number> {
  const { key, since, after, order }: Expiring = EXPIRING[table];
  const isExpired = `${since} <= now() - interval '${after}'`;
  // Without an index on `since`, its condition would read all rows that have not expired.
  const oldest = order
    ? `SELECT ${key} FROM ${table} ORDER BY ${order} LIMIT $1`
    : `SELECT ${key} FROM ${table} WHERE ${isExpired} ORDER BY ${since} LIMIT $1 FOR UPDATE SKIP LOCKED`;
  return execute(db, `DELETE FROM ${table} WHERE (${key}) IN (${oldest}) AND ${isExpired}`, [limit]);
}
