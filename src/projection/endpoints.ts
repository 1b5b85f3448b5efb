import { insertAudit } from '../store/accounts/audit.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { type DisableCondition, disableEndpoint } from '../store/webhooks/endpoints.ts';

/**
 * Disables an endpoint if the condition is true, and notifies its organization in the same transaction through its other
 * endpoints and its audit log.
 * @returns true if this call has disabled it
 */
export async function disableAndNotify(
  pool: Pool,
  id: string,
  reason: string,
  condition: DisableCondition,
): Promise<boolean> {
  return transaction(pool, async (client) => {
    const endpoint = await disableEndpoint(client, id, reason, condition);
    if (!endpoint) return false;
    const { org_id, url, failing_since } = endpoint;
    const data = { webhookId: id, url, reason, ...(failing_since !== null && { failingSince: failing_since }) };
    await enqueueEvents(client, [{ org_id, type: 'webhook.disabled', data }]);
    await insertAudit(client, {
      org_id,
      actor_kind: 'system',
      actor_id: 'webhooks',
      action: 'webhooks.disable',
      target: id,
      detail: { url, reason },
    });
    return true;
  });
}
