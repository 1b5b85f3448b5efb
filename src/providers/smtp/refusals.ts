import { type MessagePhase, namesMailbox, refusedParty } from '../../domain/bounces/account.ts';
import { classifyBounce, statedReason } from '../../domain/bounces/bounces.ts';
import type { RefusedRecipient, SendOutcome } from '../../domain/email/retry.ts';
import { SUPPRESSING } from '../../domain/email/suppression.ts';

/** nodemailer's error: its own code, the SMTP command that failed, and the server's reply. */
export interface SmtpError extends Error {
  readonly code?: string | undefined;
  readonly command?: string | undefined;
  readonly response?: string | undefined;
  readonly responseCode?: number | undefined;
  /** Set if one recipient was refused. */
  readonly recipient?: string | undefined;
  /** Set if all recipients were refused. */
  readonly rejectedErrors?: readonly SmtpError[] | undefined;
}

/**
 * Classifies a 4xx or 5xx reply that ended the SMTP session.
 * @param recipientCount recipients of its envelope
 * @param refusedBefore recipients that were refused individually before the reply
 */
export function classifyRefusal(
  failure: SmtpError,
  recipientCount: number,
  refusedBefore: readonly SmtpError[],
): SendOutcome {
  const { command = '', responseCode = 0, rejectedErrors = [failure] } = failure;
  const reply = replyOf(failure);
  const detail = sentence(reply);
  if (responseCode < 500) return { kind: 'busy', detail };
  // Greeting, EHLO, AUTH and MAIL FROM concern the account; RCPT TO and DATA this message, unless the reply names us.
  // From MAIL FROM on, a refusal may concern this sender or its organization alone.
  if (command === 'MAIL FROM') return { kind: 'account', detail, scope: 'sender' };
  if (command !== 'RCPT TO' && command !== 'DATA') return { kind: 'account', detail };
  for (const error of rejectedErrors) {
    const scope = refusedScope(error, command);
    if (scope) return { kind: 'account', detail: sentence(replyOf(error)), scope };
  }
  if (command === 'DATA') return aboutData(reply, recipientCount, refusedRecipients(refusedBefore));

  const refused = refusedRecipients(rejectedErrors);
  // If there are several reasons, prefers one that suppresses no address.
  const first = refused.find(({ reason }) => !SUPPRESSING[reason]) ?? refused[0];
  if (!first) return { kind: 'bounced', reason: classifyBounce(reply).reason, detail };
  return { kind: 'bounced', reason: first.reason, detail: first.detail, refused };
}

/** The scope of a permanent refusal of our account or sender; undefined if the reply is about a recipient or the message. */
function refusedScope(error: SmtpError, phase: MessagePhase): 'sender' | 'organization' | undefined {
  const party = refusedParty(replyOf(error), phase);
  // Words do not prove that the whole account is refused: a second organization's refusal does (`delivery/pauses.ts`).
  return party === 'account' ? 'organization' : party;
}

/**
 * A reply to DATA suppresses an address only if its words name the mailbox, and if a single recipient was not refused before: the
 * reply does not name which.
 */
function aboutData(reply: string, recipientCount: number, refused: readonly RefusedRecipient[]): SendOutcome {
  const reason = statedReason(reply);
  const detail = sentence(reply);
  const isCertain = recipientCount - refused.length === 1 && namesMailbox(reply);
  if (!reason || (SUPPRESSING[reason] && !isCertain)) return { kind: 'rejected', detail };
  return { kind: 'bounced', reason, detail, ...(refused.length > 0 && { refused }) };
}

/**
 * Returns the recipients that were refused individually. Transient refusals (4xx) count too, because the email cannot be
 * retried for one recipient after it was sent to, or refused for, the others. They never have a reason that suppresses the address.
 */
export function refusedRecipients(errors: readonly SmtpError[]): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient, responseCode = 0 } = error;
    if (recipient === undefined) return [];
    const reply = replyOf(error);
    // A refusal of our server says nothing about the recipient.
    if (responseCode >= 500 && refusedParty(reply, 'RCPT TO'))
      return { recipient, reason: 'reputation_block', detail: sentence(reply) };
    if (responseCode >= 500) return { recipient, reason: classifyBounce(reply).reason, detail: sentence(reply) };
    const reason = statedReason(reply);
    const transientReason = reason && !SUPPRESSING[reason] ? reason : 'rate_limited';
    return {
      recipient,
      reason: transientReason,
      detail: `${sentence(reply)} (It was not tried again for this recipient alone.)`,
    };
  });
}

function replyOf({ response, responseCode }: SmtpError): string {
  return response ?? String(responseCode);
}

function sentence(reply: string): string {
  return `The SMTP server answered: ${reply}`;
}
