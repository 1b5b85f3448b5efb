import { type EmailChange, TRANSITIONS } from '../domain/email-states.ts';
import { newId } from '../domain/ids.ts';
import { type ChangedEmail, changeEmails, moveEmail } from '../store/emails.ts';
import type { Db } from '../store/pool.ts';

/**
 * The one writer of an email's status after its creation: makes one change to emails that it applies to and adds it to
 * their timelines. Emails in any other status stay untouched. The caller owns the transaction.
 * @param orgId when given, only that organization's emails
 * @returns ids of the emails that were changed or noted
 */
export function project(
  db: Db,
  change: Exclude<EmailChange, 'rescheduled'>,
  emails: readonly Omit<ChangedEmail, 'event_id'>[],
  orgId?: string,
): Promise<string[]> {
  const now = Date.now();
  const rows = emails.map((email) => ({ ...email, event_id: newId('evt', now) }));
  return changeEmails(db, TRANSITIONS[change], rows, orgId);
}

/** Gives a scheduled email another time. @returns the new time, or undefined when it is not scheduled or time is bad */
export function projectReschedule(db: Db, orgId: string, id: string, scheduledAt: string): Promise<string | undefined> {
  return moveEmail(db, TRANSITIONS.rescheduled, orgId, id, newId('evt', Date.now()), scheduledAt);
}
