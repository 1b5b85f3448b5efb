import type { AuditChange } from '../store/accounts/audit.ts';

export type Actor = Pick<AuditChange, 'actor_kind' | 'actor_id'>;

export interface Changer {
  /** The only domains whose emails the caller may change; null allows every domain of the organization. */
  readonly domainIds?: readonly string[] | null;
  /** Recorded in the audit log; undefined if the caller writes that itself. */
  readonly actor?: Actor;
}

/** The operator at the command line, who has no user account. */
export const OPERATOR: Actor = { actor_kind: 'system', actor_id: 'admin' };
