import { expression } from './phrases.ts';
import { RECIPIENT_RULES } from './rules-recipient.ts';
import { SENDER_RULES } from './rules-sender.ts';
import type { BounceReason } from '../email/email.ts';

/**
 * Rules by which a reply is classified, in order: the first rule with a matching phrase decides. The order is the policy
 * for replies that state two reasons:
 *
 * - A block list, a reputation or complaints about the sender take precedence over everything, including "rate limited",
 *   "relaying denied" and "mailbox unavailable", which they cause. Only a list of links (URIBL, SURBL) is about content.
 * - Missing reverse DNS, an invalid HELO and a sender's domain that does not resolve are reputation_block: the sending
 *   side is refused, not the recipient. Failed authentication precedes the throttling or policy that it leads to.
 * - A virus, then spam in plain words, then any other fault of the content. A form against the RFCs and a refusal "for
 *   security" are content_rejected; so is "content" without a word about spam.
 * - A full mailbox precedes an inactive one if both are stated: it may be emptied, and full does not suppress.
 * - policy_block suppresses, so it comes late: it needs words about a rule and none about an address, a list or spam.
 *   The recipient's own refusal of a sender, and a group closed to outsiders, are policy_block.
 * - A server that does not relay for the recipient's domain does not know the recipient: mailbox_not_found.
 * - Servers that do not respond are dns_failure, like names that do not resolve: nothing can be delivered there.
 *   A conversation that began and was interrupted is not: the server is reachable.
 * - A receiver that is busy, out of order or timing out states nothing about its recipient: rate_limited, not `unknown`.
 *   Our own authentication and encryption failures are authentication_failure for the same reason.
 */
export const RULES: readonly { readonly reason: BounceReason; readonly words: RegExp }[] = [
  ...SENDER_RULES,
  ...RECIPIENT_RULES,
].map((rule) => ({ reason: rule.reason, words: expression(rule) }));
