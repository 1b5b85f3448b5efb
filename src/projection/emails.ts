import { type EmailChange, TRANSITIONS } from '../domain/email/states.ts';
import { newId } from '../domain/ids.ts';
import { SUPPRESSING, type SuppressionOrigin } from '../domain/email/suppression.ts';
import type { Change as AuditChange } from '../store/accounts/audit.ts';
import { type ChangedEmail, changeEmails, moveEmail } from '../store/emails/changes.ts';
import { afterCommit, type Db } from '../store/postgres/pool.ts';
import { addSuppressions } from '../store/suppressions/suppressions.ts';
import { noted, tally } from '../telemetry/topics.ts';

/** A change of one email, or of one of its recipients. */
export type Change = Omit<ChangedEmail, 'event_id'>;

/**
 * The only writer of an email's status after its creation. It applies one change to the emails whose status allows it, adds it
 * to their timelines, queues webhooks and adds recipients to the suppression list. The caller owns the transaction.
 * @param orgId restricts the change to emails of this organization
 * @returns ids of the emails that were changed or got a timeline entry, one per recipient
 */
export async function project(
  db: Db,
  change: Exclude<EmailChange, 'rescheduled'>,
  emails: readonly Change[],
  orgId?: string,
): Promise<string[]> {
  return (await projectClaims(db, change, emails, orgId)).ids;
}

/** Like `project`; also returns the changes that were refused because a callback's claim does not match the email. */
export async function projectClaims(
  db: Db,
  change: Exclude<EmailChange, 'rescheduled'>,
  emails: readonly Change[],
  orgId?: string,
): Promise<{ ids: string[]; refused: readonly Change[] }> {
  const now = Date.now();
  const rows = new Map<string, Change>(emails.map((email) => [newId('evt', now), email]));
  const updates = [...rows].map(([event_id, email]) => ({ ...email, event_id }));
  const results = await changeEmails(db, TRANSITIONS[change], updates, orgId);
  const changed = results.filter(({ is_refused }) => !is_refused);
  const suppressions = changed.flatMap(({ id, event_id, org_id, marketing }) => {
    const { recipient, bounce_reason } = rows.get(event_id) as Change;
    const origin = ORIGINS[change]?.(bounce_reason, marketing);
    if (recipient === undefined || origin === undefined) return [];
    return {
      id: newId('sup', now),
      event_id: newId('evt', now),
      org_id,
      email: recipient,
      origin,
      message_id: id,
      ...(bounce_reason && { reason: bounce_reason }),
    };
  });
  await addSuppressions(db, suppressions);
  const reasons = changed.flatMap(({ event_id }) => rows.get(event_id)?.bounce_reason ?? []);
  afterCommit(db, () => publishChange(change, changed.length, tally(reasons)));
  const refused = results.flatMap(({ is_refused, event_id }) => (is_refused ? (rows.get(event_id) as Change) : []));
  return { ids: changed.map(({ id }) => id), refused };
}

function publishChange(change: EmailChange, count: number, reasons?: ReadonlyMap<string, number>): void {
  const { event } = TRANSITIONS[change];
  if (event === null || count === 0) return;
  noted.publish({ kind: 'email', event: event.slice('email.'.length), count, ...(reasons && { reasons }) });
}

/** The suppression origin that results from a change; undefined if it suppresses no address. */
const ORIGINS: {
  readonly [C in EmailChange]?: (reason: Change['bounce_reason'], marketing: boolean) => SuppressionOrigin | undefined;
} = {
  complained: () => 'complaint',
  unsubscribed: () => 'unsubscribe',
  bounced: (reason, marketing) => {
    if (reason === undefined || !SUPPRESSING[reason]) return undefined;
    if (reason !== 'provider_suppressed') return 'bounce';
    // Postmark also refuses marketing email to recipients who unsubscribed with its own link; other email reaches them.
    return marketing ? 'unsubscribe' : 'provider';
  },
};

/** Returns true if `project` runs a single statement for this change, which needs no transaction. */
export function isOneStatement(change: EmailChange): boolean {
  return ORIGINS[change] === undefined;
}

/**
 * Reschedules an email.
 * @param actor the actor for the audit log; undefined if the caller writes that entry
 * @returns the new time; undefined if the email is not scheduled or the time is not allowed
 */
export async function projectReschedule(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string,
  actor?: Pick<AuditChange, 'actor_kind' | 'actor_id'>,
): Promise<string | undefined> {
  const now = Date.now();
  const audit = actor ? { ...actor, id: newId('aud', now) } : null;
  const moved = await moveEmail(db, TRANSITIONS.rescheduled, orgId, id, newId('evt', now), scheduledAt, audit);
  if (moved !== undefined) afterCommit(db, () => publishChange('rescheduled', 1));
  return moved;
}
