import { type Db, execute } from './pool.ts';

/** Locks a text until the transaction ends. Two texts wait for each other also if their hashes of 64 bits are equal. */
export async function lockText(client: Db, text: string): Promise<void> {
  await execute(client, {
    name: 'lock_text',
    text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
    values: [text],
  });
}
