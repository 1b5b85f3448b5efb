import { type ErasedAddress, REPLACED, type WalkStep, walkStep } from '../emails/erasure.ts';
import { type Db, execute, queryColumn, queryOneRow, queryRows } from '../postgres/pool.ts';

/** A recipient of chat-app messages and SMS to erase. */
export interface ErasedNumber extends ErasedAddress {
  /** Every form of the number in E.164, and the ids of the chat-app users who write from it. */
  readonly ids: readonly string[];
}

/** Returns the ids, also former ones, of the chat-app users who have written from a number. @param forms of the number, E.164 */
export async function findUserIds(db: Db, orgId: string, forms: readonly string[]): Promise<string[]> {
  const rows = await queryRows<{ user_id: string | null; former_user_id: string | null }>(
    db,
    `SELECT user_id, former_user_id FROM chat_contacts WHERE org_id = $1 AND wa_number = ANY ($2)`,
    [orgId, forms],
  );
  return [...new Set(rows.flatMap((row) => [row.user_id ?? [], row.former_user_id ?? []].flat()))];
}

/** Finds messages to a recipient, each of its ids and forms. */
export function findMessagesTo(db: Db, orgId: string, ids: readonly string[], limit: number): Promise<string[]> {
  return queryColumn(db, `SELECT id FROM chat_messages WHERE org_id = $1 AND "to" = ANY ($2) ORDER BY id LIMIT $3`, [
    orgId,
    ids,
    limit,
  ]);
}

/** Meta's ids of messages contain the number of the user. */
const HAS_NUMBER = (id: string): string => `${id} LIKE '%wamid.%'`;

/**
 * Replaces the recipient of messages by the placeholder, also in their errors, timelines and attempts. Lock the messages before.
 * @returns the number of changed rows of timelines and attempts
 */
export async function replaceRecipient(
  db: Db,
  ids: readonly string[],
  { pattern, placeholder }: ErasedNumber,
): Promise<{ events: number; attempts: number }> {
  await execute(
    db,
    `UPDATE chat_messages SET "to" = $3, error = ${REPLACED('error')},
            provider_message_id = CASE WHEN ${HAS_NUMBER('provider_message_id')} THEN NULL ELSE provider_message_id END
     WHERE id = ANY ($1)`,
    [ids, pattern, placeholder],
  );
  const events = await execute(
    db,
    `UPDATE chat_events
     SET dedupe_key = CASE WHEN ${HAS_NUMBER('dedupe_key')} THEN 'erased ' || id ELSE ${REPLACED('dedupe_key')} END,
         detail = ${REPLACED('detail::text')}::jsonb
     WHERE message_id = ANY ($1) AND (dedupe_key ~* $2 OR ${HAS_NUMBER('dedupe_key')} OR detail::text ~* $2)`,
    [ids, pattern, placeholder],
  );
  const attempts = await execute(
    db,
    `UPDATE attempts
     SET detail = ${REPLACED('detail')}, changes = ${REPLACED('changes::text')}::jsonb,
         provider_message_id = CASE WHEN ${HAS_NUMBER('provider_message_id')} THEN NULL ELSE provider_message_id END
     WHERE message_id = ANY ($1) AND (detail ~* $2 OR changes::text ~* $2 OR ${HAS_NUMBER('provider_message_id')})`,
    [ids, pattern, placeholder],
  );
  return { events, attempts };
}

/**
 * Erases what a user has written from events for the endpoints of an organization, and the references to the user's files. What
 * remains are the fields that every such event has.
 */
export function eraseReceived(
  db: Db,
  orgId: string,
  { ids, placeholder }: ErasedNumber,
  after: string,
  limit: number,
): Promise<WalkStep> {
  return walkStep(db, 'webhook_events', after, limit, async (eventIds) => {
    const { count } = await queryOneRow<{ count: number }>(
      db,
      `WITH received AS (
         SELECT id, data->>'messageId' AS inbound_id FROM webhook_events
         WHERE id = ANY ($1) AND org_id = $2 AND type IN ('sms.received', 'chatapp.received')
           AND (data->>'from' = ANY ($3) OR data->>'userId' = ANY ($3))
       ), files AS (
         DELETE FROM chat_inbound WHERE id = ANY (ARRAY (SELECT inbound_id FROM received)) AND org_id = $2
       ), erased AS (
         UPDATE webhook_events AS event
         SET data = jsonb_strip_nulls(jsonb_build_object(
               'from', $4::text, 'to', data->'to', 'messageId', data->'messageId', 'sentAt', data->'sentAt', 'type', data->'type',
               'text', CASE event.type WHEN 'sms.received' THEN '' END)),
             payload = NULL
         FROM received WHERE event.id = received.id
       )
       SELECT count(*)::int AS count FROM received`,
      [eventIds, orgId, ids, placeholder],
    );
    return count;
  });
}

/** Replaces a number in the responses that are stored for repeated requests. @returns the position of the next step */
export async function replaceInResponses(
  db: Db,
  orgId: string,
  { likePatterns, pattern, placeholder }: ErasedNumber,
  after: string,
  limit: number,
): Promise<string | null> {
  const keys = await queryColumn<string>(
    db,
    `SELECT key FROM idempotency_keys WHERE org_id = $1 AND key > $2 ORDER BY key LIMIT $3`,
    [orgId, after, limit],
  );
  await execute(
    db,
    `UPDATE idempotency_keys SET answer = ${REPLACED('answer::text')}::json
     WHERE key = ANY ($1) AND org_id = $4 AND answer::text LIKE ANY ($5)`,
    [keys, pattern, placeholder, orgId, likePatterns],
  );
  return keys.length < limit ? null : (keys.at(-1) ?? null);
}

/** Deletes the contacts of a user. @returns their number */
export function deleteContactsOf(db: Db, orgId: string, ids: readonly string[]): Promise<number> {
  return execute(
    db,
    `DELETE FROM chat_contacts
     WHERE org_id = $1 AND (wa_number = ANY ($2) OR user_id = ANY ($2) OR former_user_id = ANY ($2))`,
    [orgId, ids],
  );
}

/**
 * Suppresses a recipient and its placeholder without storing it: hashes replace its opt-outs.
 * @returns the number of deleted opt-outs
 */
export function suppressNumberHashes(
  db: Db,
  orgId: string,
  ids: readonly string[],
  hashes: readonly Buffer[],
): Promise<number> {
  return execute(
    db,
    `WITH added AS (
       INSERT INTO erased_recipients (org_id, hash) SELECT $1, hash FROM unnest($3::bytea[]) AS hash ON CONFLICT DO NOTHING
     )
     DELETE FROM sms_opt_outs WHERE org_id = $1 AND recipient = ANY ($2)`,
    [orgId, ids, hashes],
  );
}

/** Returns true if a recipient was erased. @param hash of the recipient */
export async function isErased(db: Db, orgId: string, hash: Buffer): Promise<boolean> {
  const rows = await queryRows(db, {
    name: 'is_erased',
    text: `SELECT FROM erased_recipients WHERE org_id = $1 AND hash = $2`,
    values: [orgId, hash],
  });
  return rows.length > 0;
}
