import { newId } from '../../lib/ids.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, execute, queryColumn, queryRows } from '../postgres/pool.ts';

/** A member in the dashboard, a program with a key, or Sendwright itself. */
type ActorKind = 'user' | 'key' | 'system';

/** An audit log entry to store. */
export interface AuditChange {
  readonly org_id: string;
  readonly actor_kind: ActorKind;
  /** The user's or key's id; for the system the name of its part. */
  readonly actor_id: string;
  /** The resource and the operation, as in `webhooks.create`. */
  readonly action: string;
  readonly target: string | null;
  /** Further details, but no secrets. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export type AuditEntry = Omit<AuditChange, 'org_id'> & {
  id: string;
  at: string;
  /** The email address of the user who made the change; null for another kind of actor, and for a user who was deleted. */
  actor_email: string | null;
};

export async function insertAudit(db: Db, change: AuditChange): Promise<void> {
  await execute(
    db,
    `INSERT INTO audit_log (id, org_id, actor_kind, actor_id, action, target, detail)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      newId('aud'),
      change.org_id,
      change.actor_kind,
      change.actor_id,
      change.action,
      change.target,
      JSON.stringify(change.detail),
    ],
  );
}

/** Records an event of a user, such as a sign-in, in each organization of the user. */
export async function insertAuditOfUser(db: Db, userId: string, change: Omit<AuditChange, 'org_id'>): Promise<void> {
  const orgIds = await queryColumn<string>(db, `SELECT org_id FROM memberships WHERE user_id = $1`, [userId]);
  for (const org_id of orgIds) await insertAudit(db, { ...change, org_id });
}

/** Changes of an organization, newest first. */
export function listAudit(db: Db, orgId: string, after: Cursor | null, limit: number): Promise<AuditEntry[]> {
  return queryRows(
    db,
    `SELECT entry.id, at, actor_kind, actor_id, action, target, detail, users.email AS actor_email
     FROM audit_log AS entry LEFT JOIN users ON actor_kind = 'user' AND users.id = actor_id
     WHERE org_id = $1 AND (at, entry.id) < ($2::timestamptz, $3)
     ORDER BY at DESC, entry.id DESC LIMIT $4`,
    [orgId, ...cursorValues(after), limit],
  );
}

/** Returns the ids of an organization's objects that still exist and have a page. */
export async function findExistingTargets(db: Db, orgId: string, ids: readonly string[]): Promise<Set<string>> {
  const existing = await queryColumn<string>(
    db,
    ['emails', 'batches', 'domains', 'webhook_endpoints', 'chat_messages', 'chat_numbers']
      .map((table) => `SELECT id FROM ${table} WHERE org_id = $1 AND id = ANY ($2)`)
      .join(' UNION ALL '),
    [orgId, ids],
  );
  return new Set(existing);
}
