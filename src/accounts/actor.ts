import type { AuditChange } from '../store/accounts/audit.ts';

export type Actor = Pick<AuditChange, 'actor_kind' | 'actor_id'>;

export interface Changer {
  /** The domains whose emails it may change; null allows every domain of its organization. */
  readonly domainIds?: readonly string[] | null;
  /** Recorded with the change; undefined when the caller writes the audit log. */
  readonly actor?: Actor;
}

/** The operator on the command line, who has database access and no account. */
export const OPERATOR: Actor = { actor_kind: 'system', actor_id: 'admin' };
