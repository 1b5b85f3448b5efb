import { type MessagePhase, namesMailbox, refusedParty } from '../../domain/bounces/account.ts';
import { classifyBounce, statedReason } from '../../domain/bounces/bounces.ts';
import type { DeferredRecipient, NamedRecipients, RefusedRecipient, SendOutcome } from '../../domain/email/retry.ts';
import { SUPPRESSING } from '../../domain/email/suppression.ts';
import { isRecipientLimit } from './recipient-limit.ts';

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
  // With pipelining, a server that refused MAIL FROM also refuses each RCPT TO, as out of sequence.
  const errors = command === 'RCPT TO' ? rejectedErrors : command === 'DATA' ? refusedBefore : [];
  const named = namedRecipients(errors);
  const [deferral] = command === 'RCPT TO' ? (named.deferred ?? []) : [];
  if (responseCode < 500 || deferral) {
    // While a reply concerns our account, the email is tried again as a whole.
    const isPerRecipient = recipientCount > 1 && !errors.some((error) => !isDeferral(error) && isAboutUs(error));
    return { kind: 'busy', detail: deferral?.detail ?? detail, ...(isPerRecipient && named) };
  }
  // Greeting, EHLO, AUTH and MAIL FROM concern the account; RCPT TO and DATA this message, unless the reply names us.
  // From MAIL FROM on, a refusal may concern this sender or its organization alone.
  if (command === 'MAIL FROM') return { kind: 'account', detail, scope: 'sender' };
  if (command !== 'RCPT TO' && command !== 'DATA') return { kind: 'account', detail };
  for (const error of rejectedErrors) {
    const scope = refusedScope(error, command);
    if (scope) return { kind: 'account', detail: sentence(replyOf(error)), scope };
  }
  if (command === 'DATA') return aboutData(reply, recipientCount, named);

  const { refused = [] } = named;
  // If there are several reasons, prefers one that suppresses no address.
  const first = refused.find(({ reason }) => !SUPPRESSING[reason]) ?? refused[0];
  if (!first) return { kind: 'bounced', reason: classifyBounce(reply).reason, detail };
  return { kind: 'bounced', reason: first.reason, detail: first.detail, refused };
}

/** The outcome of a transaction with more recipients than the server takes. */
export function overLimit(failure: SmtpError, refusedBefore: readonly SmtpError[]): SendOutcome {
  const detail = sentence(replyOf(failure));
  return { kind: 'busy', detail, ...namedRecipients(refusedBefore), isOverLimit: true };
}

/** The scope of a permanent refusal of our account or sender; undefined if the reply is about a recipient or the message. */
function refusedScope(error: SmtpError, phase: MessagePhase): 'sender' | 'organization' | undefined {
  const party = refusedParty(replyOf(error), phase);
  // Words do not prove that the whole account is refused: a second organization's refusal does (`delivery/pauses.ts`).
  return party === 'account' ? 'organization' : party;
}

/**
 * A reply to DATA suppresses an address only if its words name the mailbox, and if the others were refused or deferred before: the
 * reply does not name which.
 */
function aboutData(reply: string, recipientCount: number, named: NamedRecipients): SendOutcome {
  const { refused = [], deferred = [] } = named;
  const reason = statedReason(reply);
  const detail = sentence(reply);
  const isCertain = recipientCount - refused.length - deferred.length === 1 && namesMailbox(reply);
  if (reason && (!SUPPRESSING[reason] || isCertain)) return { kind: 'bounced', reason, detail, ...named };
  return { kind: 'rejected', detail, ...(deferred.length > 0 && named) };
}

function isAboutUs(error: SmtpError): boolean {
  return refusedParty(replyOf(error), 'RCPT TO') !== undefined;
}

/** Returns true for a reply that refuses a recipient for now. */
function isDeferral(error: SmtpError): boolean {
  return (error.responseCode ?? 0) < 500 || isRecipientLimit(replyOf(error));
}

/** Returns the recipients that RCPT TO was refused for, permanently or for now. */
export function namedRecipients(errors: readonly SmtpError[]): NamedRecipients {
  const deferred = errors.filter(isDeferral).flatMap((error): DeferredRecipient[] => {
    const { recipient } = error;
    if (recipient === undefined) return [];
    const reply = replyOf(error);
    return [{ recipient, detail: sentence(reply), isOverLimit: isRecipientLimit(reply) }];
  });
  const refused = refusedRecipients(errors.filter((error) => !isDeferral(error)));
  return { ...(refused.length > 0 && { refused }), ...(deferred.length > 0 && { deferred }) };
}

function refusedRecipients(errors: readonly SmtpError[]): RefusedRecipient[] {
  return errors.flatMap((error) => {
    const { recipient } = error;
    if (recipient === undefined) return [];
    const reply = replyOf(error);
    // A refusal of our server says nothing about the recipient.
    const reason = isAboutUs(error) ? 'reputation_block' : classifyBounce(reply).reason;
    return { recipient, reason, detail: sentence(reply) };
  });
}

function replyOf({ response, responseCode }: SmtpError): string {
  return response ?? String(responseCode);
}

function sentence(reply: string): string {
  return `The SMTP server answered: ${reply}`;
}
