import type { Pool } from '../../src/store/postgres/pool.ts';

/** Begins an attempt of a message, which has no outcome yet, like a worker that dies during its call. */
export async function beginAttempt(pool: Pool, messageId: string, call: string, provider: string): Promise<void> {
  await pool.query(
    `INSERT INTO attempts (message_id, n, call, provider)
     SELECT $1, coalesce(max(n), 0) + 1, $2, $3 FROM attempts WHERE message_id = $1`,
    [messageId, call, provider],
  );
}

/** Ages the attempts of a message. */
export async function ageAttempts(pool: Pool, messageId: string, seconds: number): Promise<void> {
  await pool.query(
    `UPDATE attempts SET started_at = started_at - $2 * interval '1 s', denied_at = denied_at - $2 * interval '1 s'
     WHERE message_id = $1`,
    [messageId, seconds],
  );
}
