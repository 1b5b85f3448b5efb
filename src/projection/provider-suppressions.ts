import { newId } from '../domain/ids.ts';
import type { ReportClaim } from '../domain/feedback.ts';
import type { SuppressionOrigin } from '../domain/suppression.ts';
import { findOrganizationOf } from '../store/callbacks.ts';
import { type Pool, transaction } from '../store/pool.ts';
import { addSuppressions, removeSuppressions } from '../store/suppressions.ts';

/** What a provider's own suppression list says now about a recipient of an email. */
export interface ProviderSuppression {
  readonly emailId: string;
  /** The bare address as the provider wrote it. */
  readonly recipient: string;
  /** How it came onto the provider's list; null when it is off it. */
  readonly origin: SuppressionOrigin | null;
  readonly claim: ReportClaim;
}

/**
 * Makes the list of an email's organization say what the provider's says. Being taken off the provider's takes back what
 * only the provider said; what bounced, complained or was put there by hand stays.
 * @returns false when there is no such email, or the claim does not fit it
 */
export async function projectProviderSuppression(pool: Pool, said: ProviderSuppression): Promise<boolean> {
  const { emailId, recipient, origin, claim } = said;
  return transaction(pool, async (client) => {
    const orgId = await findOrganizationOf(client, emailId, recipient, claim);
    if (orgId === undefined) return false;
    const now = Date.now();
    if (origin === null) {
      const eventIds = [newId('evt', now), newId('evt', now)] as const;
      await removeSuppressions(client, orgId, recipient.toLowerCase(), ['provider', 'unsubscribe'], eventIds);
    } else {
      const entry = { id: newId('sup', now), event_id: newId('evt', now), org_id: orgId, email: recipient, origin };
      await addSuppressions(client, [{ ...entry, message_id: emailId }]);
    }
    return true;
  });
}
