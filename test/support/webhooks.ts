import { randomUUID } from 'node:crypto';
import type { WebhookDeps } from '../../src/delivery/webhooks/contract.ts';
import { drain } from '../../src/delivery/webhooks/drain.ts';

/**
 * Leases an endpoint and posts its due deliveries, like one run of a worker.
 * @returns milliseconds until its next delivery is due; null without one
 */
export async function drainEndpoint(deps: WebhookDeps, endpointId: string, maxRead = Infinity): Promise<number | null> {
  const holder = randomUUID();
  await deps.pool.query(
    `UPDATE webhook_endpoints SET leased_by = $2, leased_until = now() + interval '1 hour' WHERE id = $1`,
    [endpointId, holder],
  );
  await drain(deps, { endpointId, holder, isHeld: () => true, maxRead: () => maxRead });
  const { rows } = await deps.pool.query<{ in_ms: number | null }>(
    `SELECT extract(epoch FROM min(next_attempt_at) - now())::float8 * 1000 AS in_ms FROM webhook_deliveries WHERE endpoint_id = $1`,
    [endpointId],
  );
  return rows[0]?.in_ms ?? null;
}
