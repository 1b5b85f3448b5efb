import type { Logger } from 'pino';
import { maskAddresses } from '../lib/mask.ts';
import { type AuditChange, insertAudit, insertAuditOfUser } from '../store/accounts/audit.ts';
import type { User } from '../store/accounts/users.ts';
import type { Db } from '../store/postgres/pool.ts';

export type Actor = Pick<AuditChange, 'actor_kind' | 'actor_id'>;

export interface Changer {
  /** The only domains whose emails the caller may change; null allows every domain of the organization. */
  readonly domainIds?: readonly string[] | null;
  /** Recorded in the audit log; undefined if the caller writes that itself. */
  readonly actor?: Actor;
}

/** The operator at the command line, who has no user account. */
export const OPERATOR: Actor = { actor_kind: 'system', actor_id: 'admin' };

/** Details of an action, for the audit log. */
export type Detail = Readonly<Record<string, unknown>>;

/** Records a change of a resource, unless the caller does that itself. */
export async function auditByChanger(
  db: Db,
  orgId: string,
  { actor }: Changer,
  action: string,
  target: string,
  detail: Detail = {},
): Promise<void> {
  if (actor) await insertAudit(db, { org_id: orgId, ...actor, action, target, detail });
}

/** Records a user's action on the own account, in each organization of the user. */
export async function auditByUser(db: Db, { id }: User, action: string, detail: Detail = {}): Promise<void> {
  await insertAuditOfUser(db, id, { actor_kind: 'user', actor_id: id, action, target: id, detail });
}

/** Records an action on a user's account. The user is only its target, because it is unknown who made the request. */
export async function auditBySystem(db: Db, { id }: User, action: string, detail: Detail = {}): Promise<void> {
  await insertAuditOfUser(db, id, { actor_kind: 'system', actor_id: 'dashboard', action, target: id, detail });
}

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
