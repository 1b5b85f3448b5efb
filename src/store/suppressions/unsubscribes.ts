import type { Email } from '../emails/emails.ts';
import { type Db, queryRow } from '../postgres/pool.ts';

/** An email as an unsubscribe link leads to it: whose it is, and who sent it to whom. */
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
