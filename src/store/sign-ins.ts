import type { Db } from './pool.ts';

/** Minutes after which tries are forgotten. */
const WINDOW = `interval '15 minutes'`;

export interface Tries {
  subject: string;
  /** This one included. */
  tries: number;
  /** Seconds until they are forgotten. */
  seconds: number;
}

/** Counts a try for each subject, before it is known whether it succeeds: so a burst cannot overtake the count. */
export async function countTries(db: Db, subjects: readonly string[]): Promise<Tries[]> {
  const { rows } = await db.query<Tries>(
    `INSERT INTO sign_in_failures AS earlier (subject, tries)
     SELECT subject, 1 FROM unnest($1::text[]) AS subject ORDER BY subject
     ON CONFLICT (subject) DO UPDATE SET
       tries = CASE WHEN earlier.since < now() - ${WINDOW} THEN 1 ELSE least(earlier.tries, 1000000) + 1 END,
       since = CASE WHEN earlier.since < now() - ${WINDOW} THEN now() ELSE earlier.since END
     RETURNING subject, tries, ceil(extract(epoch FROM since + ${WINDOW} - now()))::integer AS seconds`,
    [subjects],
  );
  return rows;
}

/** Takes one try back, that did succeed, and forgets all of `forgotten`. */
export async function uncountTry(db: Db, subject: string, forgotten: string): Promise<void> {
  await db.query(`UPDATE sign_in_failures SET tries = tries - 1 WHERE subject = $1`, [subject]);
  await db.query(`DELETE FROM sign_in_failures WHERE subject = $1 OR since < now() - ${WINDOW}`, [forgotten]);
}
