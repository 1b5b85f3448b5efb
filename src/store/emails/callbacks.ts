import type { ReportClaim } from '../../domain/email/feedback.ts';
import type { Db } from '../postgres/pool.ts';

/** Keeps what a provider posted that changed nothing, as it came. */
export async function keepCallback(db: Db, provider: string, body: string): Promise<void> {
  await db.query({
    name: 'keep_callback',
    text: `INSERT INTO provider_callbacks (provider, body) VALUES ($1, $2)`,
    values: [provider, body],
  });
}

/**
 * SQL that is true when a callback's claim fits the email `emails.id`: its recipient is one of the email's, and its email
 * id was signed by us or its message id is one that the provider gave us. Stored addresses are as customers wrote them: of
 * those with a domain in Unicode only the part before the @ is compared. OFFSET 0 prevents a plan that reads all copies.
 * @param claim SQL of the lower-cased recipient, of the provider's message id, and of whether our signature was right
 */
export function fitsClaim(claim: { recipient: string; messageId: string; isSigned: string }): string {
  const { recipient, messageId, isSigned } = claim;
  return `(
    (${isSigned} OR emails.provider_message_id = ${messageId} OR EXISTS (
      SELECT FROM email_recipients AS copy
      WHERE copy.email_id = emails.id AND copy.provider_message_id = ${messageId} OFFSET 0
    )) AND EXISTS (
      SELECT FROM jsonb_array_elements_text(emails."to" || coalesce(emails.cc, '[]') || coalesce(emails.bcc, '[]')) AS mailbox,
        LATERAL (SELECT lower(regexp_replace(coalesce(substring(mailbox FROM '<([^<>]*)>\\s*$'), mailbox), '^\\s+|\\s+$', '', 'g')))
          AS parsed(address)
      WHERE address = ${recipient}
         OR (address !~ '^[ -~]*$' AND split_part(address, '@', 1) = split_part(${recipient}, '@', 1))
    )
  )`;
}

/** Whose email a callback is about; undefined when there is none with this id, or the claim does not fit it. */
export async function findOrganizationOf(
  db: Db,
  emailId: string,
  recipient: string,
  { messageId, isSigned }: ReportClaim,
): Promise<string | undefined> {
  const { rows } = await db.query<{ org_id: string }>({
    name: 'find_organization_of_report',
    text: FIND_ORGANIZATION,
    values: [emailId, recipient.toLowerCase(), messageId, isSigned],
  });
  return rows[0]?.org_id;
}

const FIND_ORGANIZATION = `SELECT org_id FROM emails WHERE id = $1 AND ${fitsClaim({
  recipient: '$2::text',
  messageId: '$3::text',
  isSigned: '$4::boolean',
})}`;
