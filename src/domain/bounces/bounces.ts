import { addressReason, exactReason, readCodes, reasonByCodes, type ReplyCodes } from './codes.ts';
import { RULES, type Rule } from './rules/rules.ts';
import { decisiveReply } from './transcript.ts';
import { expression } from './rules/expression.ts';
import { readableWords } from './words.ts';
import type { BounceReason } from '../email/email.ts';
import { SUPPRESSING } from '../email/suppression.ts';

/** Maximum length of a reply that is parsed, in UTF-16 code units; real replies are about a third as long. */
export const MAX_REPLY_LENGTH = 2_000;

/**
 * Classifies a bounce. `reason` is `unknown` if the reply states none; `suppress` is true if the recipient must be
 * suppressed.
 */
export function classifyBounce(response: string): { reason: BounceReason; suppress: boolean } {
  const reason = statedReason(response) ?? 'unknown';
  return { reason, suppress: SUPPRESSING[reason] };
}

/**
 * Returns the reason in a receiving server's reply. Sources in order of precedence: a specific enhanced code, unless words
 * name the recipient as the cause; words (`rules/`); other enhanced codes; the basic code. A reason that suppresses is
 * replaced if the reply contradicts it. Returns undefined without a reason, so that the caller can use other facts.
 * @param response a reply as quoted by a provider or an SMTP client: in any case and language, on one or several lines, or a
 * transcript of several replies
 */
export const statedReason = classifier(RULES);

/** Builds `statedReason` from other rules; tests use it to leave phrases out. */
export function classifier(rules: readonly Rule[]): (response: string) => BounceReason | undefined {
  const compiled = rules.map(({ reason, phrases, isExplicit = false, isLastResort = false, isVague = false }) => ({
    reason,
    isExplicit,
    isLastResort,
    isVague,
    words: expression(phrases),
  }));
  const lastResorts = compiled.filter(({ isLastResort }) => isLastResort);
  const statements = compiled.filter(({ isLastResort }) => !isLastResort);
  const reasonOf = (reply: string): BounceReason | undefined => {
    const codes = readCodes(reply);
    const words = readableWords(reply, codes);
    const rule = statements.find((candidate) => candidate.words.test(words));
    const isExplicit = rule?.isExplicit ?? false;
    const reason =
      (isExplicit ? undefined : exactReason(codes)) ??
      (rule?.isVague ? addressReason(codes) : undefined) ??
      rule?.reason ??
      reasonByCodes(codes, HAS_WORDS.test(words)) ??
      lastResorts.find((candidate) => candidate.words.test(words))?.reason;
    if (reason !== undefined && !SUPPRESSING[reason]) return reason;
    return nonSuppressingReason({ reply, codes, words, reason, isExplicit }) ?? reason;
  };
  return (response) => {
    const text = response.slice(0, MAX_REPLY_LENGTH);
    const decisive = decisiveReply(text);
    return (decisive === undefined ? undefined : reasonOf(decisive)) ?? reasonOf(text);
  };
}

/** Matches a word that is not a placeholder for a code, a host or an address. */
const HAS_WORDS = /(?<![@\p{L}])\p{L}{2}/u;

/** Words for a temporary condition. */
const TRANSIENT_WORDS = /temporar|later|again|in progress|unverified|lookup fail/;

/** The server refused in reply to MAIL FROM, HELO or EHLO. */
const OF_SENDER = /(?:in reply to|after) (?:pipelined )?(?:mail from|helo|ehlo)/i;
const OF_CLIENT = /refused to talk to me|after initial connection/i;
const SENDER_WORDS =
  /(?<![a-z])(?:sender|return|mail ?from|from domain|envelope from|reverse path|your (?:own )?(?:domain|host|server|mx|dns))(?![a-z])/;

const REFUSED = /connection refused/;
const IP_ADDRESS = /(?<![a-z@])ips?(?![a-z])/;

/** True if an enhanced code without its class is about the network (RFC 3463: x.4.x). */
const isOfRouting = (detail: string): boolean => detail.startsWith('4.');

interface Reading {
  readonly reply: string;
  readonly codes: ReplyCodes;
  readonly words: string;
  readonly reason: BounceReason | undefined;
  readonly isExplicit: boolean;
}

/** Returns the replacement of a reason that would suppress, if the reply shows that the recipient is not at fault. */
function nonSuppressingReason({ reply, codes, words, reason, isExplicit }: Reading): BounceReason | undefined {
  const isRefusalOfServer = codes.basic !== undefined;
  // A refusal before RCPT concerns the sender.
  if (OF_SENDER.test(reply)) return 'reputation_block';
  if (OF_CLIENT.test(reply) && reason !== 'dns_failure') return 'reputation_block';
  // A server that replies is reachable, so the domain that it cannot resolve may be the sender's.
  if (reason === 'dns_failure' && isRefusalOfServer && SENDER_WORDS.test(words)) return 'reputation_block';
  if (reason === 'dns_failure' && isRefusalOfServer && !codes.details.some(isOfRouting) && REFUSED.test(words)) {
    return 'reputation_block';
  }
  // A policy about IP addresses concerns the sending server. An address without such words may be that of the replying host.
  if (reason === 'policy_block' && IP_ADDRESS.test(words)) return 'reputation_block';
  if (!codes.isTransient || (reason === 'dns_failure' && !isRefusalOfServer)) return undefined;
  // A transient refusal suppresses only if its words state a lasting cause.
  return isExplicit && !TRANSIENT_WORDS.test(words) ? undefined : 'rate_limited';
}
