import type { Logger } from 'pino';
import { maskAddresses } from '../lib/mask.ts';
import { type AuditChange, insertAudit } from '../store/accounts/audit.ts';
import type { Db } from '../store/postgres/pool.ts';

/**
 * Writes a change that is committed to the audit log. If that fails, it logs the error instead: after an error response the change
 * would be repeated, and a secret that is shown once would be lost.
 */
export async function auditCommitted(db: Db, log: Pick<Logger, 'error'>, change: AuditChange): Promise<void> {
  await insertAudit(db, change).catch((error: unknown) => {
    const { org_id, actor_kind, actor_id, action } = change;
    const target = change.target && maskAddresses(change.target);
    log.error({ err: error, org_id, actor_kind, actor_id, action, target }, 'a change is missing in the audit log');
  });
}
