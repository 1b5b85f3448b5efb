import { type Db, execute, type Pool, queryColumn, transaction } from '../postgres/pool.ts';

/**
 * SQL of the texts in which an organization's recipients are stored, by table. A recipient that no table names is in none of the
 * others. Callbacks of providers have no organization.
 */
export const RECIPIENT_TEXTS = {
  emails: `SELECT concat_ws(' ', "to"::text, cc::text, bcc::text, reply_to::text, error) FROM emails WHERE org_id = $1`,
  email_events: `SELECT concat_ws(' ', recipient, dedupe_key, detail::text)
                 FROM email_events JOIN emails ON emails.id = email_id WHERE org_id = $1`,
  email_recipients: `SELECT concat_ws(' ', recipient, recipient.error)
                     FROM email_recipients AS recipient JOIN emails ON emails.id = email_id WHERE org_id = $1`,
  attempts: `SELECT concat_ws(' ', detail, changes::text) FROM attempts JOIN (
               SELECT id FROM emails WHERE org_id = $1 UNION ALL SELECT id FROM chat_messages WHERE org_id = $1
             ) AS message ON message.id = message_id`,
  chat_messages: `SELECT concat_ws(' ', "to", error) FROM chat_messages WHERE org_id = $1`,
  chat_events: `SELECT concat_ws(' ', dedupe_key, detail::text)
                FROM chat_events JOIN chat_messages AS message ON message.id = message_id WHERE org_id = $1`,
  chat_contacts: `SELECT concat_ws(' ', wa_number, user_id, former_user_id) FROM chat_contacts WHERE org_id = $1`,
  sms_opt_outs: `SELECT recipient FROM sms_opt_outs WHERE org_id = $1`,
  suppressions: `SELECT email FROM suppressions WHERE org_id = $1`,
  provider_list_removals: `SELECT email FROM provider_list_removals WHERE org_id = $1`,
  webhook_events: `SELECT concat_ws(' ', data::text, payload) FROM webhook_events WHERE org_id = $1`,
  provider_callbacks: `SELECT body FROM provider_callbacks WHERE $1::text IS NOT NULL`,
  idempotency_keys: `SELECT answer::text FROM idempotency_keys WHERE org_id = $1`,
  audit_log: `SELECT concat_ws(' ', target, detail::text) FROM audit_log WHERE org_id = $1`,
} as const;

const TEXTS_PER_FETCH = 1_000;

/** Reads all texts in which an organization's recipients are stored. @param visit gets some of them, and the connection that reads them */
export async function walkRecipientTexts(
  pool: Pool,
  orgId: string,
  visit: (texts: readonly string[], client: Db) => Promise<void>,
): Promise<void> {
  for (const query of Object.values(RECIPIENT_TEXTS)) {
    await transaction(pool, async (client) => {
      await execute(client, `DECLARE recipient_texts NO SCROLL CURSOR FOR ${query}`, [orgId]);
      let texts: string[];
      do {
        texts = await queryColumn<string>(client, `FETCH ${TEXTS_PER_FETCH} FROM recipient_texts`);
        await visit(texts, client);
      } while (texts.length > 0);
    });
  }
}
