import type { Db } from './pool.ts';

/** One thing to ask of Temporal, with what it takes to ask it. */
export interface OutboxRow {
  id: string;
  action: 'start' | 'reschedule' | 'cancel';
  message_id: string;
  tries: number;
  org_id: string;
  batch_id: string | null;
  /** The first recipient as it was given, and how many more there are. */
  first_to: string;
  more_to: number;
  due_at: string | null;
  version: number;
  /** Whether anything is left to deliver: false once the email was canceled or has ended. */
  open: boolean;
}

/**
 * The oldest rows that no other relay holds, locked until the caller's transaction ends. They speak of the email as it
 * is now, not as it was when they were written: a start after a reschedule waits for the new time.
 */
export async function lockOutbox(db: Db, limit: number): Promise<OutboxRow[]> {
  const { rows } = await db.query<OutboxRow>({
    name: 'lock_outbox',
    text: `SELECT outbox.id, outbox.action, outbox.message_id, outbox.tries, email.org_id, email.batch_id,
                  email."to" ->> 0 AS first_to, jsonb_array_length(email."to") - 1 AS more_to,
                  email.scheduled_at AS due_at, email.schedule_version AS version,
                  email.status IN ('queued', 'scheduled') AS open
           FROM outbox JOIN emails AS email ON email.id = outbox.message_id
           WHERE outbox.retry_at IS NULL OR outbox.retry_at <= now()
           ORDER BY outbox.id LIMIT $1 FOR UPDATE OF outbox SKIP LOCKED`,
    values: [limit],
  });
  return rows;
}

export async function deleteOutbox(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.query({ name: 'delete_outbox', text: `DELETE FROM outbox WHERE id = ANY ($1)`, values: [ids] });
}

/** Puts rows that Temporal refused off: a second, doubling to ten minutes, so that they hold up nobody else's. */
export async function deferOutbox(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.query(
    `UPDATE outbox SET tries = tries + 1, retry_at = now() + least(power(2, least(tries, 20)), 600) * interval '1 second'
     WHERE id = ANY ($1)`,
    [ids],
  );
}

/** Leaves word for the relay, in the transaction that makes it true. */
export async function insertOutbox(db: Db, action: OutboxRow['action'], messageIds: readonly string[]): Promise<void> {
  if (messageIds.length === 0) return;
  await db.query({
    name: 'insert_outbox',
    text: `INSERT INTO outbox (message_id, action) SELECT id, $1 FROM unnest($2::text[]) AS message(id)`,
    values: [action, messageIds],
  });
}
