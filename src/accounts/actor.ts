import type { Change } from '../store/accounts/audit.ts';

/** Who makes a change, for the audit log. */
export type Actor = Pick<Change, 'actor_kind' | 'actor_id'>;

/** A caller that changes emails: what it is limited to, and how the audit log names it. */
export interface Changer {
  /** The only domains whose emails it may change; null is every domain of its organization. */
  readonly domainIds?: readonly string[] | null;
  /** Noted with the change; undefined where the caller writes the audit log. */
  readonly actor?: Actor;
}

/** The operator on the command line, who has access to the database and no account. */
export const OPERATOR: Actor = { actor_kind: 'system', actor_id: 'admin' };
