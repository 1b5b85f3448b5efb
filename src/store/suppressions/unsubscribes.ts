import type { Email } from '../emails/emails.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';

/** The organization, sender and recipients of an email that contains an unsubscribe link. */
export interface AddressedEmail extends Pick<Email, 'id' | 'from' | 'to' | 'cc' | 'bcc'> {
  org_id: string;
}

/** An email of any organization. The caller must verify that the request is authorized. */
export function findAddressedEmail(db: Db, id: string): Promise<AddressedEmail | undefined> {
  return queryRow(db, {
    name: 'find_addressed_email',
    text: `SELECT id, org_id, "from", "to", cc, bcc FROM emails WHERE id = $1`,
    values: [id],
  });
}

/** The same for several; emails that do not exist are missing. */
export function findAddressedEmails(db: Db, ids: readonly string[]): Promise<AddressedEmail[]> {
  return queryRows(db, {
    name: 'find_addressed_emails',
    text: `SELECT id, org_id, "from", "to", cc, bcc FROM emails WHERE id = ANY ($1)`,
    values: [ids],
  });
}
