import type { Email } from '../emails/emails.ts';
import { type Db, queryRow } from '../postgres/pool.ts';

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
