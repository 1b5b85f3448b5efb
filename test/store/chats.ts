import type { ChatContent, ChatProviderName } from '../../src/domain/chat/chat.ts';
import type { MessageStatus } from '../../src/domain/messages/message.ts';
import { newId } from '../../src/lib/ids.ts';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendMessage } from '../../src/intake/messages.ts';
import { sendSms } from '../../src/intake/sms.ts';
import { insertNumber } from '../../src/store/chat/numbers.ts';
import type { Db, Pool } from '../../src/store/postgres/pool.ts';
import { contents } from '../support/contents.ts';

let count = 0;

/** A connected number. @param credentials its own, sealed */
export async function connect(
  db: Db,
  orgId: string,
  provider: ChatProviderName = 'twilio',
  credentials: Buffer | null = null,
  id = newId('num'),
): Promise<{ id: string; number: string }> {
  const number = `+1202555${String(1_000 + ++count)}`;
  const phone_number_id = provider === 'meta' ? `phone-${count}` : null;
  await insertNumber(
    db,
    orgId,
    { id, number, provider, phone_number_id, account_sid: null, templates: [], verified_by: 'operator' },
    credentials,
  );
  return { id, number };
}

export const TO = '+4915123456789';

/** The content of a minimal message. */
export const TEXT: ChatContent = { text: 'Hello', preview_url: false, template: null, image: null, document: null };

/** Stores one message. @param scheduledAt UTC, or null for immediately. @returns its id */
export async function acceptText(
  pool: Pool,
  orgId: string,
  from: string,
  fields: Partial<ChatContent> = {},
  scheduledAt: string | null = null,
): Promise<string> {
  const { rows } = await pool.query<{ id: string }>('SELECT id FROM chat_numbers WHERE number = $1', [from]);
  const content = { ...TEXT, ...fields };
  const message = { channel: 'chatapp', to: TO, country: 'DE', type: 'text', content, tags: [] } as const;
  return sendMessage(
    { pool, wakeRelay: () => undefined, limits: noLimits(), contents },
    orgId,
    { ...message, scheduled_at: scheduledAt },
    async () => ({ id: rows[0]?.id ?? 'num_none', from }),
    ({ id }) => id,
  );
}

/** Stores one SMS from a sender of its own, or from a certain one. @returns its id */
export async function acceptSms(
  pool: Pool,
  orgId: string,
  { from = `+1202556${String(1_000 + ++count)}`, scheduledAt = null as string | null } = {},
): Promise<string> {
  const { rowCount } = await pool.query('SELECT FROM sms_senders WHERE org_id = $1 AND number = $2', [orgId, from]);
  if (rowCount === 0) await addSender(pool, orgId, from, []);
  const { id } = await sendSms(
    { pool, wakeRelay: () => undefined, limits: noLimits(), contents },
    { orgId },
    { from, to: TO, text: 'Hello', tags: [], scheduled_at: scheduledAt },
  );
  return id;
}

export interface ChatRow {
  status: MessageStatus;
  error: string | null;
  error_code: string | null;
  provider: string | null;
  provider_message_id: string | null;
  /** Minutes from now, rounded; null for never. */
  look_in: number | null;
}

export async function chatRow(db: Db, id: string): Promise<ChatRow> {
  const { rows } = await db.query<ChatRow>(
    `SELECT status, error, error_code, provider, provider_message_id,
            round(extract(epoch FROM look_at - now()) / 60)::float8 AS look_in
     FROM chat_messages WHERE id = $1`,
    [id],
  );
  if (!rows[0]) throw new Error(`no message ${id}`);
  return rows[0];
}

/** The types of a message's events, oldest first, without `chatapp.`. */
export async function chatTimeline(db: Db, id: string): Promise<string[]> {
  const { rows } = await db.query<{ type: string }>(
    `SELECT replace(type, 'chatapp.', '') AS type FROM chat_events WHERE message_id = $1 ORDER BY created_at, id`,
    [id],
  );
  return rows.map(({ type }) => type);
}
