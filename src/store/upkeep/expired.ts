import { type Db, execute } from '../postgres/pool.ts';

/** Rows that expire some time after `since`, oldest first by `order`, which has an index. */
interface Expiring {
  readonly key: string;
  readonly order: string;
  readonly since: string;
  readonly after: string;
}

const EXPIRING = {
  idempotency_keys: { key: 'org_id, key', order: 'created_at', since: 'created_at', after: '24 hours' },
  provider_callbacks: { key: 'id', order: 'id', since: 'received_at', after: '720 hours' },
  chat_inbound: { key: 'id', order: 'id', since: 'received_at', after: '720 hours' },
  sms_received: { key: 'provider_message_id', order: 'received_at', since: 'received_at', after: '720 hours' },
  sign_in_attempts: { key: 'kind, subject', order: 'expires_at', since: 'expires_at', after: '0' },
  sign_in_failures: { key: 'subject', order: 'since', since: 'since', after: '15 minutes' },
  sessions: { key: 'sha256', order: 'expires_at', since: 'expires_at', after: '0' },
  invitations: { key: 'id', order: 'id', since: 'expires_at', after: '0' },
} as const satisfies Record<string, Expiring>;
export type ExpiringTable = keyof typeof EXPIRING;

/** Deletes rows of a table that have expired, among its `limit` oldest that no other transaction has locked. */
export function deleteExpired(db: Db, table: ExpiringTable, limit: number): Promise<number> {
  const { key, order, since, after } = EXPIRING[table];
  return execute(
    db,
    `DELETE FROM ${table} WHERE (${key}) IN (
       SELECT ${key} FROM ${table} ORDER BY ${order} LIMIT $1 FOR UPDATE SKIP LOCKED
     ) AND ${since} <= now() - interval '${after}'`,
    [limit],
  );
}
