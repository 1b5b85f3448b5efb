import type { BounceReason } from '../../email/email.ts';
import { AUTHENTICATION } from './authentication.ts';
import { CONTENT } from './content.ts';
import { MAILBOX } from './mailbox.ts';
import { POLICY } from './policy.ts';
import { PROVIDERS } from './providers.ts';
import { ROUTES } from './routes.ts';
import { SENDER } from './sender.ts';
import { TRAFFIC } from './traffic.ts';

/** A reason and the phrases that state it. */
export interface Rule {
  readonly reason: BounceReason;
  readonly phrases: readonly string[];
  /** True if the phrases name the recipient as the cause. Other codes, and 4xx, do not override that. */
  readonly isExplicit?: true;
  /** True if the rule applies only after the codes of the reply. */
  readonly isLastResort?: true;
  /** True for words that accompany any refusal ("try again", "error"). A 5xx code for the recipient's address precedes them. */
  readonly isVague?: true;
}

/**
 * Rules by which a reply is classified, in order: the first rule with a matching phrase decides. The order is the policy
 * for replies that state two reasons:
 *
 * - A code that a provider documents is more exact than the words beside it.
 * - A block list, a reputation or complaints about the sender take precedence over everything, including "rate limited",
 *   "relaying denied" and "mailbox unavailable", which they cause. Only a list of links (URIBL, SURBL) is about content.
 * - Missing reverse DNS, an invalid HELO and a sender's domain that does not resolve are reputation_block: the sending
 *   side is refused, not the recipient. Failed authentication precedes the throttling or policy that it leads to.
 * - A virus, then spam in plain words, then any other fault of the content. A form against the RFCs and a refusal "for
 *   security" are content_rejected; so is "content" without a word about spam.
 * - A full mailbox precedes an inactive one if both are stated: it may be emptied, and full does not suppress.
 * - policy_block suppresses, so it comes late: it needs words about a rule of the recipient, its organization or domain, and none
 *   about an address, a list or spam. The recipient's own refusal of a sender, and a group closed to outsiders, are policy_block.
 *   "Denied", "not allowed" (decision 133) and a policy that has no owner (decision 165) are not.
 * - A server that does not relay for the recipient's domain does not know the recipient: mailbox_not_found.
 * - Servers that do not respond are dns_failure, like names that do not resolve: nothing can be delivered there.
 *   A conversation that began and was interrupted is not: the server is reachable.
 * - A receiver that is busy, out of order or timing out states nothing about its recipient: rate_limited, not `unknown`.
 *   Our own authentication and encryption failures are authentication_failure for the same reason.
 * - Greylisting ends by itself, also if a reputation caused it. So does a failure of the receiver's own scanner or database,
 *   which is not a refusal by it, and a mailbox that is locked or disabled temporarily: rate_limited.
 * - If neither words nor codes state a reason, the party that the text mentions decides: the sending side ("you are", "your",
 *   "blocked" too), then the recipient.
 */
export const RULES: readonly Rule[] = [
  { reason: 'provider_suppressed', phrases: POLICY.suppressed, isExplicit: true },
  { reason: 'reputation_block', phrases: PROVIDERS.blocked },
  { reason: 'rate_limited', phrases: PROVIDERS.limited },
  { reason: 'authentication_failure', phrases: PROVIDERS.unauthenticated },
  { reason: 'spam_block', phrases: PROVIDERS.spam },
  { reason: 'policy_block', phrases: POLICY.ownLists },
  { reason: 'reputation_block', phrases: SENDER.verification },
  { reason: 'mailbox_not_found', phrases: MAILBOX.templates },
  { reason: 'spam_block', phrases: CONTENT.listedLinks },
  { reason: 'reputation_block', phrases: SENDER.reverseDns },
  { reason: 'rate_limited', phrases: TRAFFIC.greylisting },
  { reason: 'reputation_block', phrases: SENDER.blockLists },
  { reason: 'reputation_block', phrases: SENDER.spamSources },
  { reason: 'authentication_failure', phrases: AUTHENTICATION.ofSender },
  { reason: 'rate_limited', phrases: TRAFFIC.rates },
  { reason: 'reputation_block', phrases: SENDER.blockedNetworks },
  { reason: 'reputation_block', phrases: SENDER.refusedSenders },
  { reason: 'mailbox_full', phrases: MAILBOX.full },
  { reason: 'message_too_large', phrases: CONTENT.size },
  { reason: 'dns_failure', phrases: ROUTES.names },
  { reason: 'rate_limited', phrases: TRAFFIC.ownPrograms },
  { reason: 'content_rejected', phrases: CONTENT.viruses },
  { reason: 'spam_block', phrases: CONTENT.spam },
  { reason: 'content_rejected', phrases: CONTENT.form },
  { reason: 'spam_block', phrases: CONTENT.suspectedSpam },
  { reason: 'policy_block', phrases: POLICY.closed },
  { reason: 'authentication_failure', phrases: AUTHENTICATION.ofConnection },
  { reason: 'rate_limited', phrases: TRAFFIC.temporaryStates, isVague: true },
  { reason: 'mailbox_inactive', phrases: MAILBOX.inactive, isExplicit: true },
  { reason: 'mailbox_not_found', phrases: MAILBOX.named, isExplicit: true },
  { reason: 'dns_failure', phrases: ROUTES.unreachable },
  { reason: 'mailbox_not_found', phrases: MAILBOX.unknown },
  { reason: 'rate_limited', phrases: TRAFFIC.limits },
  { reason: 'reputation_block', phrases: SENDER.sendingSide },
  { reason: 'policy_block', phrases: POLICY.rules },
  { reason: 'rate_limited', phrases: POLICY.temporary },
  { reason: 'reputation_block', phrases: POLICY.unowned },
  { reason: 'content_rejected', phrases: CONTENT.parts },
  { reason: 'rate_limited', phrases: TRAFFIC.transient, isVague: true },
  { reason: 'mailbox_not_found', phrases: MAILBOX.vague },
  { reason: 'reputation_block', phrases: SENDER.denied },
  { reason: 'reputation_block', phrases: SENDER.mentioned, isLastResort: true },
  { reason: 'mailbox_not_found', phrases: MAILBOX.mentioned, isLastResort: true },
];
