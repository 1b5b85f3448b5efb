import type { Contact, StoredContact } from '../../domain/chat/contacts.ts';
import type { ChatUser } from '../../domain/chat/inbound.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import type { ReceivingNumber } from './inbound.ts';

type ContactsOf = Pick<ReceivingNumber, 'org_id' | 'number'>;

/** Finds the contacts that have the number or the id of a user, the latter also as their former id. */
export function findContacts(
  db: Db,
  { org_id, number }: ContactsOf,
  user: Pick<ChatUser, 'number' | 'userId'>,
): Promise<StoredContact[]> {
  return queryRows(db, {
    name: 'find_contacts',
    text: `SELECT id, wa_number, user_id, former_user_id, username, last_inbound_at FROM chat_contacts
           WHERE org_id = $1 AND number = $2 AND (user_id = $3 OR former_user_id = $3 OR wa_number = $4) ORDER BY id`,
    values: [org_id, number, user.userId, user.number],
  });
}

/** Returns true if a user has written from this number to any connected number of the organization. */
export async function hasWritten(db: Db, orgId: string, number: string): Promise<boolean> {
  const rows = await queryRows(db, {
    name: 'has_written',
    text: `SELECT FROM chat_numbers AS ours JOIN chat_contacts AS contact USING (org_id, number)
           WHERE ours.org_id = $1 AND contact.wa_number = $2 LIMIT 1`,
    values: [orgId, number],
  });
  return rows.length > 0;
}

/** Stores a contact; one with an id replaces the contact with this id. */
export async function saveContact(
  db: Db,
  { org_id, number }: ContactsOf,
  { id, ...contact }: Contact & { readonly id?: string },
): Promise<void> {
  const { wa_number, user_id, former_user_id, username, last_inbound_at } = contact;
  const values = [wa_number, user_id, former_user_id, username, last_inbound_at];
  await (id === undefined
    ? execute(db, {
        name: 'insert_contact',
        text: `INSERT INTO chat_contacts (org_id, number, wa_number, user_id, former_user_id, username, last_inbound_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)`,
        values: [org_id, number, ...values],
      })
    : execute(db, {
        name: 'update_contact',
        text: `UPDATE chat_contacts SET wa_number = $2, user_id = $3, former_user_id = $4, username = $5, last_inbound_at = $6
               WHERE id = $1`,
        values: [id, ...values],
      }));
}

/** Takes a number from a contact that has an id as well: another user writes from it now. */
export async function withdrawNumber(db: Db, id: string): Promise<void> {
  await execute(db, {
    name: 'withdraw_number',
    text: `UPDATE chat_contacts SET wa_number = NULL WHERE id = $1`,
    values: [id],
  });
}

export async function deleteContact(db: Db, id: string): Promise<void> {
  await execute(db, { name: 'delete_contact', text: `DELETE FROM chat_contacts WHERE id = $1`, values: [id] });
}
