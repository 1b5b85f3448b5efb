import { classifyBounce, statedReason } from '../../domain/bounces/bounces.ts';
import type { RefusedRecipient, SendOutcome } from '../../domain/email/retry.ts';
import { SUPPRESSING } from '../../domain/email/suppression.ts';

/** What nodemailer adds to an error: its own code, the SMTP command it waited for, and the server's reply. */
export interface SmtpError extends Error {
  readonly code?: string | undefined;
  readonly command?: string | undefined;
  readonly response?: string | undefined;
  readonly responseCode?: number | undefined;
  /** Of the refusal of one recipient. */
  readonly recipient?: string | undefined;
  /** Of the refusal of all of them. */
  readonly rejectedErrors?: readonly SmtpError[] | undefined;
}

/**
 * Replies that are about who we are, in whatever phase they come: many servers put off what they have against the
 * client or the sender until a recipient is named (Postfix's `smtpd_delay_reject`).
 */
const ABOUT_US =
  /^53[058]|relay(?:ing)? (?:access )?(?:is )?(?:denied|prohibited|not (?:permitted|allowed))|not (?:permitted|allowed|authori[sz]ed) to relay|authentication (?:is )?(?:required|needed)|must (?:first )?authenticate|not (?:logged in|authenticated)|sender address rejected|client host rejected|helo command rejected|sendasdenied/i;

/**
 * What a reply of 4xx or 5xx to the whole conversation says of the email.
 * @param recipientCount recipients of its envelope
 */
export function classifyRefusal(failure: SmtpError, recipientCount: number): SendOutcome {
  const { command = '', responseCode = 0, rejectedErrors = [failure] } = failure;
  const reply = replyOf(failure);
  const detail = sentence(reply);
  if (responseCode < 500) return { kind: 'busy', detail };
  // Greeting, EHLO, AUTH and MAIL FROM are about us; RCPT TO and DATA about this message, if they do not say otherwise.
  // What comes after the sender was named may be about this sender alone.
  if (command === 'MAIL FROM') return { kind: 'account', detail, scope: 'sender' };
  if (command !== 'RCPT TO' && command !== 'DATA') return { kind: 'account', detail };
  if (rejectedErrors.some((error) => ABOUT_US.test(replyOf(error))))
    return { kind: 'account', detail, scope: 'sender' };
  if (command === 'DATA') return aboutData(reply, recipientCount);

  const refused = refusedRecipients(rejectedErrors);
  // Of several, one that costs nobody his place: it stands for all of them.
  const first = refused.find(({ reason }) => !SUPPRESSING[reason]) ?? refused[0];
  if (!first) return { kind: 'bounced', reason: classifyBounce(reply).reason, detail };
  return { kind: 'bounced', reason: first.reason, detail: first.detail, refused };
}

/** Nobody is named by a reply to the data: what would put a recipient on the suppression list must be about the only one. */
function aboutData(reply: string, recipientCount: number): SendOutcome {
  const reason = statedReason(reply);
  const detail = sentence(reply);
  if (!reason || (SUPPRESSING[reason] && recipientCount > 1)) return { kind: 'rejected', detail };
  return { kind: 'bounced', reason, detail };
}

/**
 * The recipients that were refused one by one. What was put off (4xx) counts too: once the email has gone to the others
 * it cannot be tried for one alone. Since that passes, it never has a reason that puts a good address on the
 * suppression list.
 */
export function refusedRecipients(errors: readonly SmtpError[]): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient, responseCode = 0 } = error;
    if (recipient === undefined) return [];
    const reply = replyOf(error);
    // Nothing is wrong with a recipient whom we may not write to.
    if (ABOUT_US.test(reply)) return { recipient, reason: 'reputation_block', detail: sentence(reply) };
    if (responseCode >= 500) return { recipient, reason: classifyBounce(reply).reason, detail: sentence(reply) };
    const spoken = statedReason(reply);
    const reason = spoken && !SUPPRESSING[spoken] ? spoken : 'rate_limited';
    return { recipient, reason, detail: `${sentence(reply)} (It had gone to the others and was not tried again.)` };
  });
}

function replyOf({ response, responseCode }: SmtpError): string {
  return response ?? String(responseCode);
}

function sentence(reply: string): string {
  return `The SMTP server answered: ${reply}`;
}
