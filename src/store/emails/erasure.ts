import { lockRows } from './attempts.ts';
import type { Email } from './emails.ts';
import { IS_OPEN } from './recipients.ts';
import type { ErasureRecord } from '../files/erasure-records.ts';
import { type Db, execute, queryColumn, queryOneValue, queryRows } from '../postgres/pool.ts';
import { FIRST_VERSION } from '../sealing/data-keys.ts';

/** An address to erase, in the forms that statements search for. */
export interface ErasedAddress {
  /** Bare, in lower case. */
  readonly address: string;
  /** Its replacement: an address under the reserved domain `invalid`. */
  readonly placeholder: string;
  /** LIKE patterns of texts in lower case that may contain the address, for a cheap test before `pattern`. */
  readonly likePatterns: readonly string[];
  /**
   * A LIKE pattern of texts in lower case with its local part. With characters other than ASCII, a domain has more spellings than
   * `likePatterns` has, such as `example。com`.
   */
  readonly localPattern: string;
  /**
   * A Postgres regular expression that matches the address in text, JSON and URLs, its domain as A-labels or in Unicode, but no
   * longer address that contains it.
   */
  readonly pattern: string;
}

/** The position of a walk, and the number of rows that it has changed. */
export interface WalkStep {
  /** The position of the next step; null at the end. */
  readonly next: string | null;
  readonly changed: number;
}

/** An email in the order of a walk over an organization's emails. */
export interface WalkedEmail {
  readonly id: string;
  readonly created_at: string;
  /** True if it may contain the address. */
  readonly is_candidate: boolean;
}

/** The condition that a text may contain an address in a spelling of its domain that the other patterns lack. */
const MAY_BE_RESPELLED = (text: string, localPattern: string): string =>
  `(octet_length(${text}) > length(${text}) AND lower(${text}) LIKE ${localPattern})`;

/** Lists emails of an organization in the order of (created_at, id). @param after the last email of the previous step */
export function walkEmails(
  db: Db,
  orgId: string,
  { likePatterns, localPattern }: ErasedAddress,
  after: { readonly created_at: string; readonly id: string },
  limit: number,
): Promise<WalkedEmail[]> {
  return queryRows(db, {
    name: 'walk_emails',
    // Without its table's name, created_at would be the text: all emails would be read and sorted. OFFSET 0 prevents a plan that
    // reads all events, recipients or attempts.
    text: `SELECT id, created_at::text AS created_at,
                  lower(named.text) LIKE ANY ($4)
                  OR ${MAY_BE_RESPELLED('named.text', '$6')}
                  OR EXISTS (SELECT FROM email_events
                             WHERE email_id = emails.id AND lower(concat_ws(' ', recipient, dedupe_key, detail::text)) LIKE ANY ($4) OFFSET 0)
                  OR EXISTS (SELECT FROM email_recipients
                             WHERE email_id = emails.id AND lower(error) LIKE ANY ($4) OFFSET 0)
                  OR EXISTS (SELECT FROM attempts
                             WHERE message_id = emails.id AND lower(concat_ws(' ', detail, changes::text)) LIKE ANY ($4) OFFSET 0)
                    AS is_candidate
           FROM emails CROSS JOIN LATERAL (
             SELECT concat_ws(' ', "to"::text, cc::text, bcc::text, reply_to::text, error) AS text
           ) AS named
           WHERE org_id = $1 AND (created_at, id) > ($2::timestamptz, $3)
           ORDER BY emails.created_at, id LIMIT $5`,
    values: [orgId, after.created_at, after.id, likePatterns, limit, localPattern],
  });
}

export interface AddressedEmail extends Readonly<Pick<Email, 'id' | 'to' | 'cc' | 'bcc' | 'reply_to'>> {
  readonly is_open: boolean;
}

/** Locks emails, in the order of their ids. */
export async function lockAddressed(db: Db, ids: readonly string[]): Promise<AddressedEmail[]> {
  await lockRows(db, ids);
  return queryRows(db, {
    name: 'find_addressed',
    text: `SELECT id, "to", cc, bcc, reply_to, ${IS_OPEN('email')} AS is_open
           FROM emails AS email WHERE id = ANY ($1) ORDER BY id`,
    values: [ids],
  });
}

/** SQL of a text with the recipient replaced. @param text a column of a statement with `pattern` as $2, `placeholder` as $3 */
export const REPLACED = (text: string): string => `regexp_replace(${text}, $2, $3, 'gi')`;

/** Replaces the recipients of emails, and the address in their errors. */
export async function replaceAddressed(
  db: Db,
  { pattern, placeholder }: ErasedAddress,
  emails: readonly AddressedEmail[],
): Promise<void> {
  await execute(db, {
    name: 'replace_addressed',
    text: `UPDATE emails AS email
           SET "to" = value.to, cc = value.cc, bcc = value.bcc, reply_to = value.reply_to, error = ${REPLACED('error')}
           FROM json_to_recordset($1) AS value(id text, "to" jsonb, cc jsonb, bcc jsonb, reply_to jsonb)
           WHERE email.id = value.id AND email.id = ANY ($4)`,
    values: [JSON.stringify(emails), pattern, placeholder, emails.map(({ id }) => id)],
  });
}

/** Replaces the address in the records of emails. @returns the number of changed rows of each table */
export async function replaceInRecords(
  db: Db,
  ids: readonly string[],
  { address, pattern, placeholder }: ErasedAddress,
): Promise<{ events: number; recipients: number; attempts: number }> {
  // A report that was repeated after an earlier erasure is a duplicate of the report that was renamed then.
  await execute(
    db,
    `DELETE FROM email_events AS event USING email_events AS former
     WHERE event.email_id = ANY ($1) AND event.dedupe_key ~* $2 AND former.email_id = event.email_id
       AND former.ctid <> event.ctid AND former.dedupe_key = ${REPLACED('event.dedupe_key')}`,
    [ids, pattern, placeholder],
  );
  const events = await execute(
    db,
    `UPDATE email_events
     SET recipient = CASE WHEN recipient = $4 THEN $3 ELSE recipient END, dedupe_key = ${REPLACED('dedupe_key')},
         detail = ${REPLACED('detail::text')}::jsonb
     WHERE email_id = ANY ($1) AND (recipient = $4 OR dedupe_key ~* $2 OR detail::text ~* $2)`,
    [ids, pattern, placeholder, address],
  );
  await execute(
    db,
    `DELETE FROM email_recipients AS recipient USING email_recipients AS former
     WHERE recipient.email_id = ANY ($1) AND recipient.recipient = $2
       AND former.email_id = recipient.email_id AND former.recipient = $3`,
    [ids, address, placeholder],
  );
  const recipients = await execute(
    db,
    `UPDATE email_recipients
     SET recipient = CASE WHEN recipient = $4 THEN $3 ELSE recipient END, error = ${REPLACED('error')}
     WHERE email_id = ANY ($1) AND (recipient = $4 OR error ~* $2)`,
    [ids, pattern, placeholder, address],
  );
  const attempts = await execute(
    db,
    `UPDATE attempts SET detail = ${REPLACED('detail')}, changes = ${REPLACED('changes::text')}::jsonb
     WHERE message_id = ANY ($1) AND (detail ~* $2 OR changes::text ~* $2)`,
    [ids, pattern, placeholder],
  );
  return { events, recipients, attempts };
}

/** Changes the rows of one step of a walk over a table, in the order of their ids. */
export async function walkStep(
  db: Db,
  table: string,
  after: string,
  limit: number,
  change: (ids: string[]) => Promise<number>,
): Promise<WalkStep> {
  const ids = await queryColumn<string>(
    db,
    `SELECT id::text AS id FROM ${table} WHERE id > $1 ORDER BY ${table}.id LIMIT $2`,
    [after, limit],
  );
  const changed = await change(ids);
  return { next: ids.length < limit ? null : (ids.at(-1) ?? null), changed };
}

/** The condition that a text contains the address. @param text a column of a statement with `pattern` as $2, `likePatterns` as $5 */
const CONTAINS = (text: string): string => `(lower(${text}) LIKE ANY ($5) AND ${text} ~* $2)`;

/**
 * Replaces the address in events for the endpoints of an organization. A stored payload that may contain another spelling of it is
 * deleted: the next attempt builds the payload from the event and its email.
 */
export async function replaceInWebhookEvents(
  db: Db,
  orgId: string,
  { likePatterns, localPattern, pattern, placeholder }: ErasedAddress,
  after: string,
  limit: number,
): Promise<WalkStep> {
  return walkStep(db, 'webhook_events', after, limit, (ids) =>
    execute(
      db,
      `UPDATE webhook_events
       SET data = ${REPLACED('data::text')}::jsonb,
           payload = CASE WHEN NOT ${MAY_BE_RESPELLED('payload', '$6')} THEN ${REPLACED('payload')} END
       WHERE id = ANY ($1) AND org_id = $4
         AND (${CONTAINS('data::text')} OR ${CONTAINS('payload')} OR ${MAY_BE_RESPELLED('payload', '$6')})`,
      [ids, pattern, placeholder, orgId, likePatterns, localPattern],
    ),
  );
}

/** Replaces the address in an organization's audit log. A step reads entries of all organizations. */
export async function replaceInAuditLog(
  db: Db,
  orgId: string,
  { likePatterns, pattern, placeholder }: ErasedAddress,
  after: string,
  limit: number,
): Promise<WalkStep> {
  return walkStep(db, 'audit_log', after, limit, (ids) =>
    execute(
      db,
      `UPDATE audit_log SET target = ${REPLACED('target')}, detail = ${REPLACED('detail::text')}::jsonb
       WHERE id = ANY ($1) AND org_id = $4 AND (${CONTAINS('target')} OR ${CONTAINS('detail::text')})`,
      [ids, pattern, placeholder, orgId, likePatterns],
    ),
  );
}

/**
 * Deletes provider callbacks that contain the address. They concern no email. Those of other organizations stay; those that concern
 * no number are deleted but not counted, since they may be of another organization's email.
 */
export async function deleteCallbacksNaming(
  db: Db,
  orgId: string,
  { likePatterns, pattern }: ErasedAddress,
  after: string,
  limit: number,
): Promise<WalkStep> {
  return walkStep(db, 'provider_callbacks', after === '' ? '0' : after, limit, (ids) =>
    queryOneValue(
      db,
      `WITH deleted AS (
         DELETE FROM provider_callbacks
         WHERE id = ANY ($1::bigint[]) AND (org_id = $4 OR org_id IS NULL) AND lower(body) LIKE ANY ($2) AND body ~* $3
         RETURNING org_id
       )
       SELECT count(org_id)::int FROM deleted`,
      [ids, likePatterns, pattern, orgId],
    ),
  );
}

/**
 * Suppresses an address and its placeholder without storing it: a hash replaces its suppressions.
 * @returns the number of deleted suppressions
 */
export function suppressHashes(db: Db, orgId: string, address: string, hashes: readonly Buffer[]): Promise<number> {
  return execute(
    db,
    `WITH added AS (
       INSERT INTO erased_recipients (org_id, hash) SELECT $1, hash FROM unnest($3::bytea[]) AS hash ON CONFLICT DO NOTHING
     ), forgotten AS (
       DELETE FROM provider_list_removals WHERE org_id = $1 AND email = $2
     )
     DELETE FROM suppressions WHERE org_id = $1 AND email = $2`,
    [orgId, address, hashes],
  );
}

/**
 * Stores what a restored database lacks of recorded erasures: the hashes, and the data key that they depend on.
 * @returns false if there is no such organization
 */
export function restoreErased(db: Db, { org_id, hashes, data_key }: ErasureRecord): Promise<boolean> {
  return queryOneValue(
    db,
    `WITH org AS (
       SELECT id FROM organizations WHERE id = $1
     ), restored AS (
       INSERT INTO data_keys (org_id, version, sealed) SELECT id, $4, $3 FROM org ON CONFLICT DO NOTHING
     ), erased AS (
       INSERT INTO erased_recipients (org_id, hash)
       SELECT DISTINCT id, hash FROM org CROSS JOIN unnest($2::bytea[]) AS hash ON CONFLICT DO NOTHING
     )
     SELECT EXISTS (SELECT FROM org)`,
    [org_id, hashes, data_key, FIRST_VERSION],
  );
}
