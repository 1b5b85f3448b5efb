import { type Db, execute, queryValue } from '../postgres/pool.ts';

/** Marks emails that may have crashed the process that delivered them, or may crash it now. */
export async function markSuspects(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'mark_suspects',
    text: 'UPDATE emails SET suspected_at = clock_timestamp() WHERE id = ANY ($1) AND suspected_at IS NULL',
    values: [ids],
  });
}

/** Unmarks emails whose delivery was attempted without a crash. */
export async function clearSuspects(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'clear_suspects',
    text: 'UPDATE emails SET suspected_at = NULL WHERE id = ANY ($1) AND suspected_at IS NOT NULL',
    values: [ids],
  });
}

/** Counts a crash of an isolated process just after it had begun to deliver an email. @returns the number of crashes */
export async function countCrash(db: Db, id: string): Promise<number> {
  const crashes = await queryValue<number>(
    db,
    `UPDATE emails SET crashes = crashes + 1, suspected_at = coalesce(suspected_at, clock_timestamp())
     WHERE id = $1 RETURNING crashes`,
    [id],
  );
  return crashes ?? 0;
}
