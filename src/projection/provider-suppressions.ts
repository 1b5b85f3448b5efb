import { newId } from '../lib/ids.ts';
import type { ProviderSuppression } from '../domain/email/feedback.ts';
import type { SuppressionOrigin } from '../domain/email/suppression.ts';
import { findOrganizationOf } from '../store/emails/callbacks.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { addSuppressions, removeSuppressions } from '../store/suppressions/suppressions.ts';

/**
 * Applies a change of the provider's list to the suppression list of the email's organization. Removal from the provider's
 * list removes entries that only the provider made, and an unsubscription only if that list is for marketing email. Entries
 * of bounces, complaints and those made by hand stay.
 * @returns false if the email does not exist, or the evidence does not match it
 */
export async function projectProviderSuppression(pool: Pool, suppression: ProviderSuppression): Promise<boolean> {
  const { emailId, recipient, origin, isMarketing, evidence } = suppression;
  return transaction(pool, async (client) => {
    const orgId = await findOrganizationOf(client, emailId, recipient, evidence);
    if (orgId === undefined) return false;
    if (origin === null) {
      const origins: SuppressionOrigin[] = isMarketing ? ['provider', 'unsubscribe'] : ['provider'];
      await removeSuppressions(client, orgId, recipient.toLowerCase(), origins);
    } else {
      const entry = { id: newId('sup'), org_id: orgId, email: recipient, origin, message_id: emailId };
      await addSuppressions(client, [entry]);
    }
    return true;
  });
}
