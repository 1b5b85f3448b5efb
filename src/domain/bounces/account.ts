import { MAX_REPLY_LENGTH, statedReason } from './bounces.ts';
import { readCodes } from './codes.ts';
import { ACCOUNT } from './rules/account.ts';
import { expression } from './rules/expression.ts';
import { MAILBOX } from './rules/mailbox.ts';
import { readableWords } from './words.ts';
import type { BounceReason } from '../email/email.ts';

/** The SMTP commands that name recipients or hand over the message; the reply to the end of the message belongs to DATA. */
export type MessagePhase = 'RCPT TO' | 'DATA';

/** What a relay refused: this sender, or something that may concern every sender of our account. */
export type RefusedParty = 'sender' | 'account';

const SENDER = expression(ACCOUNT.sender);
const RELAYING = expression(ACCOUNT.relaying);
const OURS = expression(ACCOUNT.ours);
const WHOLE_ACCOUNT = expression(ACCOUNT.account);
const UNNAMED = expression(ACCOUNT.unnamed);
const OF_RECIPIENT = expression(ACCOUNT.ofRecipient);
const OF_FILTER = expression(ACCOUNT.ofFilter);
const OF_MAILBOX = expression([...ACCOUNT.ofMailbox, ...ACCOUNT.ofNetwork]);
const MAILBOX_WORDS = expression(MAILBOX.mentioned);

/** Reasons that are about the message, an address that does not exist or a rule of the recipient's side. */
const NOT_UNNAMED: ReadonlySet<BounceReason | undefined> = new Set([
  'content_rejected',
  'spam_block',
  'mailbox_not_found',
  'dns_failure',
  'policy_block',
] as const);

/**
 * Returns the party of ours that a permanent reply of our relay (`SMTP_URL`) refuses; undefined if the reply is about a
 * recipient or about the message. Replies to RCPT TO concern the recipient unless they name us. Replies to DATA concern us
 * unless they name a mailbox, a fault of the message or a filter, but only if their words fit an account.
 */
export function refusedParty(response: string, phase: MessagePhase): RefusedParty | undefined {
  const reply = response.slice(0, MAX_REPLY_LENGTH);
  const codes = readCodes(reply);
  const allWords = readableWords(reply, codes);
  // Postfix begins refusals by any rule with these words.
  const words = allWords.replaceAll('recipient address rejected', '');
  const reason = statedReason(reply);
  if (reason === 'message_too_large' || reason === 'provider_suppressed') return undefined;
  if (OURS.test(words)) return 'account';
  if (RELAYING.test(words)) return 'sender';
  if (OF_RECIPIENT.test(words) || OF_FILTER.test(words)) return undefined;
  if (WHOLE_ACCOUNT.test(words)) return 'account';
  if (SENDER.test(words)) return 'sender';
  if (phase !== 'DATA' || !UNNAMED.test(words) || NOT_UNNAMED.has(reason) || OF_MAILBOX.test(allWords))
    return undefined;
  const namesAddress = (reason === 'mailbox_inactive' || reason === 'mailbox_full') && reply.includes('@');
  return namesAddress || codes.details.some(isOfMailbox) ? undefined : 'account';
}

/** True if an enhanced code without its class is about the recipient's address or mailbox (RFC 3463: x.1.1, x.1.6, x.2.x). */
function isOfMailbox(detail: string): boolean {
  return /^(?:1\.[16]|2\.[12])$/.test(detail);
}

/** Returns true if a reply names the recipient's mailbox: by words, or by a code for its address or its state (RFC 3463). */
export function namesMailbox(response: string): boolean {
  const reply = response.slice(0, MAX_REPLY_LENGTH);
  const codes = readCodes(reply);
  return codes.details.some(isOfMailbox) || MAILBOX_WORDS.test(readableWords(reply, codes));
}
