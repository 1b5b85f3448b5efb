import { lockText } from '../postgres/lock.ts';
import { type Db, queryOneValue } from '../postgres/pool.ts';

/** The resources of an organization whose number the operator limits. */
export type LimitedResource = 'endpoints' | 'domains' | 'keys' | 'numbers' | 'members' | 'invitations';

/** The rows of organization `$1` that count. `invitations` counts members too: each open invitation may become one. */
const ROWS: Readonly<Record<LimitedResource, string>> = {
  endpoints: 'SELECT FROM webhook_endpoints WHERE org_id = $1',
  domains: 'SELECT FROM domains WHERE org_id = $1',
  keys: 'SELECT FROM api_keys WHERE org_id = $1 AND revoked_at IS NULL',
  numbers: `SELECT FROM chat_numbers WHERE org_id = $1
            UNION ALL SELECT FROM sms_senders WHERE org_id = $1`,
  members: 'SELECT FROM memberships WHERE org_id = $1',
  invitations: `SELECT FROM memberships WHERE org_id = $1
                UNION ALL SELECT FROM invitations WHERE org_id = $1 AND expires_at > now()`,
};

/** Makes transactions that add to the same resource of an organization wait for each other, until they end. */
export function lockLimit(client: Db, resource: string, orgId: string): Promise<void> {
  return lockText(client, `${resource} ${orgId}`);
}

/**
 * Counts what an organization has of a resource, up to `limit`. Until the transaction ends, other transactions that count
 * the same wait, so that two of them cannot both take the last slot.
 */
export async function lockAndCount(
  client: Db,
  resource: LimitedResource,
  orgId: string,
  limit: number,
): Promise<number> {
  // A separate statement, since a statement does not see the commits for which it has waited.
  await lockLimit(client, resource === 'invitations' ? 'members' : resource, orgId);
  return queryOneValue(client, {
    name: `count_${resource}`,
    text: `SELECT count(*)::int AS count FROM (${ROWS[resource]} LIMIT $2) AS counted`,
    values: [orgId, limit],
  });
}
