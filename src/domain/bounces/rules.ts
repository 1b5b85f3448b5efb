import { expression } from './phrases.ts';
import { RECIPIENT_RULES } from './rules-recipient.ts';
import { SENDER_RULES } from './rules-sender.ts';
import type { BounceReason } from '../email/email.ts';

/**
 * What servers say when they refuse, in the order in which it is tried: the first rule with a phrase in the reply
 * decides. The order is the policy for replies in which two reasons can be read:
 *
 * - A block list, a reputation or complaints about the sender beat all else, "rate limited", "relaying denied" and
 *   "mailbox unavailable" too: they are the cause of those. Only a list of links (URIBL, SURBL) is about content.
 * - Missing reverse DNS, an odd HELO and a sender's domain that does not resolve are reputation_block: the sending side
 *   is refused, no recipient is to blame. Failed authentication beats the throttling or the policy it leads to.
 * - A virus, then spam said in plain words, then any other fault of the content. A form against the RFCs and a refusal
 *   "for security" are content_rejected; "content" without a word about spam is, too.
 * - A full mailbox beats an inactive one where both are said: it may be emptied, and full does not suppress.
 * - policy_block suppresses, so it comes late: it needs words about a rule and none about an address, a list or spam.
 *   The recipient's own refusal of a sender, and a group closed to strangers, are policy_block.
 * - A server that does not relay for the recipient's domain knows no such recipient: mailbox_not_found.
 * - Servers that do not answer are dns_failure, like names that do not resolve: nothing can be delivered there.
 *   A conversation that began and broke off is not: that server can be reached.
 * - A receiver that is busy, out of order or out of time says nothing about its recipient: rate_limited, not `unknown`.
 *   Our own log-in and encryption are authentication_failure for the same reason.
 */
export const RULES: readonly { readonly reason: BounceReason; readonly words: RegExp }[] = [
  ...SENDER_RULES,
  ...RECIPIENT_RULES,
].map((rule) => ({ reason: rule.reason, words: expression(rule) }));
