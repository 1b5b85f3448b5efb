import { type Db, execute, queryValue } from '../postgres/pool.ts';

/** Notes that emails may have ended the process that delivered them, or may be about to. */
export async function markSuspects(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'mark_suspects',
    text: 'UPDATE emails SET suspected_at = clock_timestamp() WHERE id = ANY ($1) AND suspected_at IS NULL',
    values: [ids],
  });
}

/** Notes that a process has delivered emails, or tried to, and still lives. */
export async function clearSuspects(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'clear_suspects',
    text: 'UPDATE emails SET suspected_at = NULL WHERE id = ANY ($1) AND suspected_at IS NOT NULL',
    values: [ids],
  });
}

/** Counts that an isolated process ended when it had begun to deliver an email. @returns how often that has happened */
export async function countCrash(db: Db, id: string): Promise<number> {
  const crashes = await queryValue<number>(
    db,
    `UPDATE emails SET crashes = crashes + 1, suspected_at = coalesce(suspected_at, clock_timestamp())
     WHERE id = $1 RETURNING crashes`,
    [id],
  );
  return crashes ?? 0;
}
