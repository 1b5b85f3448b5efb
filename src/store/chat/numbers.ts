import type { ChatProviderName, NumberVerifier } from '../../domain/chat/chat.ts';
import { latestOf } from '../postgres/page.ts';
import { lockText } from '../postgres/lock.ts';
import { type Db, queryOneRow, queryOneValue, queryRow, queryRows } from '../postgres/pool.ts';

/** The content at Twilio of a number's template. */
export interface NumberTemplate {
  name: string;
  language: string;
  content_sid: string;
  /** The content's variables in the order in which a message's parameters fill them. */
  variables: string[];
}

/** A connected number in lists, without its credentials. */
export interface NumberSummary {
  id: string;
  /** E.164. */
  number: string;
  provider: ChatProviderName;
  /** Meta's id of the number. */
  phone_number_id: string | null;
  /** Its own Twilio account; null for that of the settings. */
  account_sid: string | null;
  own_token: boolean;
  created_at: string;
}

export type ChatNumber = NumberSummary & { templates: NumberTemplate[] };

const SUMMARY = `id, number, provider, phone_number_id, account_sid, credentials IS NOT NULL AS own_token, created_at`;

/** The name of the advisory lock under which numbers are connected. */
const NUMBERS_LOCK = 'connecting chat-app numbers';

/**
 * Finds connected numbers of all organizations with this number, or with this id at the provider. No other transaction connects
 * a number until the caller's ends. A unique index on (provider, phone_number_id) is impossible, since older versions allowed
 * duplicates.
 */
export async function lockConflictingNumbers(
  client: Db,
  number: string,
  provider: ChatProviderName,
  phoneNumberId: string | null,
): Promise<Pick<OperatorNumber, 'id' | 'org_id' | 'number' | 'verified_by'>[]> {
  // A separate statement: the next one must see the commits for which this one has waited.
  await lockText(client, NUMBERS_LOCK);
  return queryRows(
    client,
    `SELECT id, org_id, number, verified_by FROM chat_numbers
     WHERE number = $1 OR (provider = $2 AND phone_number_id = $3) ORDER BY id FOR UPDATE`,
    [number, provider, phoneNumberId],
  );
}

export type OperatorNumber = NumberSummary & { org_id: string; verified_by: NumberVerifier | null };

/** All connected numbers, or those of one organization, newest first. */
export function listNumbersOfAll(db: Db, orgId: string | null): Promise<OperatorNumber[]> {
  return queryRows(
    db,
    `SELECT ${SUMMARY}, org_id, verified_by FROM chat_numbers
     WHERE $1::text IS NULL OR org_id = $1 ORDER BY created_at DESC, id DESC`,
    [orgId],
  );
}

/**
 * Connects a number and its templates.
 * @param credentials its own sealed token, or null
 * @throws SQLSTATE 23505 if an organization has connected it already
 */
export function insertNumber(
  db: Db,
  orgId: string,
  number: Readonly<Omit<ChatNumber, 'own_token' | 'created_at' | 'templates'>> & {
    readonly templates: readonly NumberTemplate[];
    readonly verified_by: NumberVerifier;
  },
  credentials: Buffer | null,
): Promise<NumberSummary> {
  return queryOneRow(
    db,
    `WITH templates AS (
       INSERT INTO chat_templates (number_id, name, language, content_sid, variables)
       SELECT $1, name, language, content_sid, variables
       FROM jsonb_to_recordset($8) AS template(name text, language text, content_sid text, variables text[])
     )
     INSERT INTO chat_numbers (id, org_id, number, provider, phone_number_id, account_sid, credentials, verified_by)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $9) RETURNING ${SUMMARY}`,
    [
      number.id,
      orgId,
      number.number,
      number.provider,
      number.phone_number_id,
      number.account_sid,
      credentials,
      JSON.stringify(number.templates),
      number.verified_by,
    ],
  );
}

export function findNumber(db: Db, orgId: string, id: string): Promise<ChatNumber | undefined> {
  return queryRow(
    db,
    `SELECT ${SUMMARY},
            (SELECT coalesce(json_agg(json_build_object('name', name, 'language', language, 'content_sid', content_sid,
                               'variables', variables) ORDER BY name, language), '[]')
             FROM chat_templates WHERE number_id = chat_numbers.id) AS templates
     FROM chat_numbers WHERE id = $1 AND org_id = $2`,
    [id, orgId],
  );
}

/** Numbers of an organization, newest first. */
export const listNumbers = latestOf<NumberSummary>('chat_numbers', SUMMARY);

/** Deletes a number, its credentials, its templates and the pause of its account. @returns true if there was one */
export async function deleteNumber(db: Db, orgId: string, id: string): Promise<boolean> {
  return queryOneValue(
    db,
    `WITH deleted AS (
       DELETE FROM chat_numbers WHERE id = $1 AND org_id = $2 RETURNING id
     ), templates AS (
       DELETE FROM chat_templates WHERE number_id IN (SELECT id FROM deleted)
     ), pauses AS (
       DELETE FROM provider_pauses WHERE sender IN (SELECT id FROM deleted)
     )
     SELECT EXISTS (SELECT FROM deleted) AS deleted`,
    [id, orgId],
  );
}
