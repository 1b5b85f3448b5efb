import type { EmailProviderName } from '../domain/email/email.ts';
import { doubtChats, doubtEmails, wakeAll } from '../store/upkeep/after-restore.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';

/**
 * Makes a database that was restored from a backup fit to send from again: what was sent since the backup is known to its
 * provider alone, so everything that is open is asked about first. Nothing may send meanwhile.
 * @param provider that is asked about emails
 * @returns how many messages of either kind are open
 */
export async function doubtAll(pool: Pool, provider: EmailProviderName): Promise<{ emails: number; messages: number }> {
  return transaction(pool, async (client) => {
    const emails = await doubtEmails(client, provider);
    const messages = await doubtChats(client);
    await wakeAll(client);
    return { emails, messages };
  });
}
