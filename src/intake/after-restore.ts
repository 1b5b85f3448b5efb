import type { EmailProviderName } from '../domain/email/email.ts';
import { markEmailsAmbiguous, markMessagesAmbiguous } from '../store/upkeep/after-restore.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';

/**
 * Marks all open messages of a database that was restored from a backup as ambiguous, because only the provider knows which were
 * sent after the backup. No worker may send meanwhile.
 * @param provider the email provider at which they are reconciled
 * @returns the number of open emails, and the number of open chat-app messages and SMS
 */
export async function markAllAmbiguous(
  pool: Pool,
  provider: EmailProviderName,
): Promise<{ emails: number; messages: number }> {
  return transaction(pool, async (client) => {
    const emails = await markEmailsAmbiguous(client, provider);
    const messages = await markMessagesAmbiguous(client);
    return { emails, messages };
  });
}
