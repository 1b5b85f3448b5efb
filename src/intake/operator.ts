import type { Change } from '../store/audit.ts';

/** Who makes a change, for the audit log. */
export type Actor = Pick<Change, 'actor_kind' | 'actor_id'>;

/** The operator on the command line, who has access to the database and no account. */
export const OPERATOR: Actor = { actor_kind: 'system', actor_id: 'admin' };
