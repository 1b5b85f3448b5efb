import { type Db, queryRows } from '../postgres/pool.ts';
import type { Email } from './emails.ts';

/** An email that Sendwright tracks itself. */
export interface TrackedEmailRow extends Pick<Email, 'id' | 'from' | 'to' | 'cc' | 'bcc'> {
  /** False while no provider has accepted it, and if it failed after each attempt was refused. */
  may_be_accepted: boolean;
  /** The same for each recipient with a status of its own, such as those of copies, by its address in lower case. */
  copies: Readonly<Record<string, boolean>> | null;
}

/**
 * Returns SQL that is true unless an email or copy is known not to be accepted. One that failed after an ambiguous attempt may have
 * been accepted. OFFSET 0 prevents a plan that reads all attempts.
 * @param status SQL of the status of the email or copy
 */
const MAY_BE_ACCEPTED = (status: string): string =>
  `(CASE ${status} WHEN 'queued' THEN false
      WHEN 'failed' THEN EXISTS (
        SELECT FROM attempts WHERE message_id = email.id AND (outcome IS NULL OR outcome IN ('unknown', 'risked', 'given_up')) OFFSET 0)
      ELSE true END)`;

/** Returns those emails that exist, of any organization. The caller must verify that the request is authorized. */
export function findTrackedEmails(db: Db, ids: readonly string[]): Promise<TrackedEmailRow[]> {
  return queryRows(db, {
    name: 'find_tracked_emails',
    text: `SELECT email.id, email."from", email."to", email.cc, email.bcc,
                  ${MAY_BE_ACCEPTED('email.status')} AS may_be_accepted,
                  (SELECT jsonb_object_agg(copy.recipient, ${MAY_BE_ACCEPTED('copy.status')})
                   FROM email_recipients AS copy WHERE copy.email_id = email.id) AS copies
           FROM emails AS email WHERE email.id = ANY ($1)`,
    values: [ids],
  });
}
