import type { ReportEvidence } from '../../domain/email/feedback.ts';
import { type Db, execute, queryValue } from '../postgres/pool.ts';

/** Stores the unchanged body of a callback that changed nothing. */
export async function keepCallback(db: Db, provider: string, body: string): Promise<void> {
  await execute(db, {
    name: 'keep_callback',
    text: `INSERT INTO provider_callbacks (provider, body) VALUES ($1, $2)`,
    values: [provider, body],
  });
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
