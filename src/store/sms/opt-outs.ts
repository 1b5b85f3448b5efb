import { type Db, execute, executeOne } from '../postgres/pool.ts';

/** @param sender its number or messaging service @param recipient E.164 */
export async function insertOptOut(db: Db, orgId: string, sender: string, recipient: string): Promise<void> {
  await execute(db, {
    name: 'insert_sms_opt_out',
    text: `INSERT INTO sms_opt_outs (org_id, sender, recipient) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
    values: [orgId, sender, recipient],
  });
}

export async function deleteOptOut(db: Db, orgId: string, sender: string, recipient: string): Promise<void> {
  await execute(db, {
    name: 'delete_sms_opt_out',
    text: `DELETE FROM sms_opt_outs WHERE org_id = $1 AND sender = $2 AND recipient = $3`,
    values: [orgId, sender, recipient],
  });
}

/** @returns false if the message was received before; waits for a transaction that is receiving it */
export function insertReceived(db: Db, providerMessageId: string): Promise<boolean> {
  return executeOne(db, {
    name: 'insert_sms_received',
    text: `INSERT INTO sms_received (provider_message_id) VALUES ($1) ON CONFLICT DO NOTHING`,
    values: [providerMessageId],
  });
}
