import type { ReportEvidence } from '../../domain/email/feedback.ts';
import { callbacksDropped } from '../../telemetry/topics.ts';
import { lockText } from '../postgres/lock.ts';
import { type Db, execute, executeOne, inTransaction, queryValue } from '../postgres/pool.ts';

/** The most of one callback that is kept, in bytes: of an organization's number, which may sign it itself, and of others. */
const MAX_OWN_BYTES = 4_096;
const MAX_BYTES = 65_536;
/** The most callbacks that are kept of a number. */
const MAX_PER_NUMBER = 1_000;
/** The most bytes of callbacks that are kept. */
const MAX_TOTAL_BYTES = 256 * 1_048_576;

/** The number that a callback concerns, and its organization. */
export interface CallbackOwner {
  readonly org_id: string;
  /** E.164. */
  readonly number: string;
}

/**
 * Stores the beginning of a callback that changed nothing, unless its number has too many.
 * @param owner null if it names no connected number
 */
export async function keepCallback(
  db: Db,
  provider: string,
  body: string,
  owner: CallbackOwner | null = null,
): Promise<void> {
  if (!owner) {
    await execute(db, {
      name: 'keep_callback',
      text: `INSERT INTO provider_callbacks (provider, body) VALUES ($1, $2)`,
      values: [provider, firstBytes(body, MAX_BYTES)],
    });
    return;
  }
  const { org_id: orgId, number } = owner;
  const isKept = await inTransaction(db, async (client) => {
    // A separate statement, since a statement does not see the commits for which it has waited.
    await lockText(client, `callbacks ${orgId} ${number}`);
    return executeOne(client, {
      name: 'keep_callback_of_number',
      text: `INSERT INTO provider_callbacks (provider, body, org_id, number)
             SELECT $1, $2, $3, $4 WHERE (
               SELECT count(*) < ${MAX_PER_NUMBER}
               FROM (SELECT FROM provider_callbacks WHERE org_id = $3 AND number = $4 LIMIT ${MAX_PER_NUMBER}) AS kept
             )`,
      values: [provider, firstBytes(body, MAX_OWN_BYTES), orgId, number],
    });
  });
  if (!isKept) callbacksDropped.publish({ reason: 'number', count: 1 });
}

/** Cuts a text after a whole character. */
function firstBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  let end = Math.min(bytes.length, maxBytes);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** Deletes the oldest callbacks beyond the bytes that are kept. @returns their number, at most `limit` */
export async function deleteExcessCallbacks(db: Db, limit: number, maxBytes = MAX_TOTAL_BYTES): Promise<number> {
  const count = await execute(
    db,
    `DELETE FROM provider_callbacks WHERE id IN (
       SELECT id FROM (
         SELECT id, sum(octet_length(body)) OVER (ORDER BY id DESC) AS newer_bytes FROM provider_callbacks
       ) AS summed WHERE newer_bytes > $1 ORDER BY id LIMIT $2
     )`,
    [maxBytes, limit],
  );
  if (count > 0) callbacksDropped.publish({ reason: 'size', count });
  return count;
}

/**
 * Returns SQL that is true if a callback's evidence matches the email `emails.id`: its recipient is one of the email's, and
 * its email id has our signature or its message id is one that the provider gave us. Stored addresses are as customers wrote
 * them: if the domain is in Unicode, only the part before the @ is compared. White space before an address is removed as what is
 * not printable ASCII, since it depends on the locale whether \s matches a no-break space. OFFSET 0 prevents a plan that reads all
 * copies.
 * @param evidence SQL of the lower-cased recipient, of the provider's message id, and of whether our signature is valid
 */
export function matchesEvidence(evidence: { recipient: string; messageId: string; isSigned: string }): string {
  const { recipient, messageId, isSigned } = evidence;
  return `(
    (${isSigned} OR emails.provider_message_id = ${messageId} OR EXISTS (
      SELECT FROM email_recipients AS copy
      WHERE copy.email_id = emails.id AND copy.provider_message_id = ${messageId} OFFSET 0
    )) AND EXISTS (
      SELECT FROM jsonb_array_elements_text(emails."to" || coalesce(emails.cc, '[]') || coalesce(emails.bcc, '[]')) AS mailbox,
        LATERAL (SELECT lower(regexp_replace(coalesce(substring(mailbox FROM '<([^<>]*)>[^<>]*$'), mailbox), '^[^!-~]+|\\s+$', '', 'g')))
          AS parsed(address)
      WHERE address = ${recipient}
         OR (address !~ '^[ -~]*$' AND split_part(address, '@', 1) = split_part(${recipient}, '@', 1))
    )
  )`;
}

/** Returns the organization of a callback's email; undefined if the email does not exist, or the evidence does not match it. */
export function findOrganizationOf(
  db: Db,
  emailId: string,
  recipient: string,
  { messageId, isSigned }: ReportEvidence,
): Promise<string | undefined> {
  return queryValue(db, {
    name: 'find_organization_of_report',
    text: FIND_ORGANIZATION,
    values: [emailId, recipient.toLowerCase(), messageId, isSigned],
  });
}

const FIND_ORGANIZATION = `SELECT org_id FROM emails WHERE id = $1 AND ${matchesEvidence({
  recipient: '$2::text',
  messageId: '$3::text',
  isSigned: '$4::boolean',
})}`;
