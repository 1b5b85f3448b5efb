import type { EmailProviderName } from '../domain/email.ts';
import { addressees, recipients } from '../domain/outgoing.ts';
import { doubtChats, doubtEmails, findOpenMarketing, wakeAll } from '../store/after-restore.ts';
import { prepareCopies } from '../store/email-recipients.ts';
import { type Pool, transaction } from '../store/pool.ts';

/** What is asked about before it is sent. */
export interface Doubted {
  readonly emails: number;
  readonly messages: number;
}

/**
 * Makes a database that was restored from a backup fit to send from again: what was sent since the backup is known to its
 * provider alone, so everything that is open is asked about first. Nothing may send meanwhile.
 * @param provider that is asked about emails
 */
export async function doubtAll(pool: Pool, provider: EmailProviderName): Promise<Doubted> {
  return transaction(pool, async (client) => {
    // Whose copies are not written down is looked for as a whole, which the provider never had.
    const marketing = await findOpenMarketing(client);
    const copies = marketing.flatMap((email) => {
      const each = recipients(addressees(email));
      if (each.length === 1) return [];
      return each.map(({ address }) => ({ email_id: email.id, recipient: address.toLowerCase(), suppressed: false }));
    });
    await prepareCopies(client, copies);
    const emails = await doubtEmails(client, provider);
    const messages = await doubtChats(client);
    await wakeAll(client);
    return { emails, messages };
  });
}
