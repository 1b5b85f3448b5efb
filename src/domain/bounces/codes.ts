import type { BounceReason } from '../email/email.ts';

/** Reasons by enhanced code, without its class: RFC 3463, the registry of RFC 5248, and codes of Exchange and Gmail. */
const ENHANCED: readonly (readonly [BounceReason, string])[] = [
  ['mailbox_not_found', '1.0 1.1 1.3 1.4 1.6 1.351 7.64'],
  ['mailbox_inactive', '2.1 7.13'],
  ['mailbox_full', '2.2 3.1'],
  ['message_too_large', '2.3 3.4'],
  ['dns_failure', '1.2 1.10 4.1 4.4 4.6 4.14 4.310 4.312 4.316'],
  ['rate_limited', '2.121 2.122 3.5 4.2 4.5 4.7 4.318 5.1 5.2 5.3 5.4 7.508'],
  [
    'authentication_failure',
    '7.4 7.8 7.9 7.10 7.11 7.20 7.21 7.22 7.23 7.24 7.26 7.27 7.29 7.30 7.32 7.321 7.323 7.509 7.515',
  ],
  ['reputation_block', '1.8 7.25 7.28 7.501 7.502 7.503 7.506 7.511'],
  ['content_rejected', '1.7 7.512'],
];

const REASON_BY_DETAIL = new Map(ENHANCED.flatMap(([reason, codes]) => codes.split(' ').map((code) => [code, reason])));

/** Codes that precede the words, unless these name the recipient as the cause. Gmail uses 7.23 and 7.27 for other reasons. */
const EXACT = new Set('3.4 2.121 2.122 7.20 7.21 7.22 7.24 7.25 7.26 7.30 7.508 7.509 7.515'.split(' '));

/**
 * Reasons by basic code (RFC 5321 §4.2.3, RFC 4954, RFC 7504; 571 as 5.7.1). 550 and 554 are missing because servers use them for
 * everything.
 */
const BASIC: Readonly<Record<string, BounceReason>> = {
  452: 'mailbox_full',
  500: 'rate_limited',
  502: 'rate_limited',
  503: 'rate_limited',
  504: 'rate_limited',
  521: 'dns_failure',
  530: 'authentication_failure',
  551: 'mailbox_not_found',
  552: 'mailbox_full',
  553: 'mailbox_not_found',
  555: 'rate_limited',
  556: 'dns_failure',
  571: 'reputation_block',
};

/** Matches enhanced codes. Groups: the class; the subject with the detail. */
const ENHANCED_CODES = /(?<![\w.])([45])\.(\d{1,3}\.\d{1,3})(?!\w|\.\d)/g;

export interface ReplyCodes {
  /** The three digits at the start of the reply. */
  readonly basic: string | undefined;
  /** All enhanced codes without their class: `1.1` for 5.1.1. */
  readonly details: readonly string[];
  /** The first enhanced code as the reply contains it. */
  readonly enhanced: string | undefined;
  /** True for a temporary refusal (4xx): by the basic code, otherwise by the class of the first enhanced code. */
  readonly isTransient: boolean;
}

export function readCodes(reply: string): ReplyCodes {
  const basic = /(?:^|[:;'"<] ?)([45]\d\d)(?![\w.])/.exec(reply)?.[1];
  const matches = [...reply.matchAll(ENHANCED_CODES)];
  const enhanced = matches[0]?.[0];
  const details = matches.map(([, , detail = '']) => detail);
  return { basic, enhanced, details, isTransient: (basic ?? enhanced ?? '').startsWith('4') };
}

/**
 * Returns the reason of the first specific enhanced code, otherwise of the basic code.
 * @param hasWords true if the reply also contains words. Then x.7.x ("security or policy") means a refusal of the sender:
 * servers that apply a policy of the recipient's side, which suppresses, state it in words.
 */
export function reasonByCodes({ basic, details }: ReplyCodes, hasWords: boolean): BounceReason | undefined {
  for (const detail of details) {
    const reason = REASON_BY_DETAIL.get(detail) ?? reasonBySubject(detail, hasWords);
    if (reason) return reason;
  }
  if (basic === undefined || (hasWords && (basic === '521' || basic === '553'))) return undefined;
  return BASIC[basic];
}

/** Returns the reason of an enhanced code that precedes the words. */
export function exactReason({ details }: ReplyCodes): BounceReason | undefined {
  const detail = details.find((code) => EXACT.has(code));
  return detail === undefined ? undefined : REASON_BY_DETAIL.get(detail);
}

/** Returns the reason of a permanent code for the recipient's address (RFC 3463: 5.1.1, 5.1.3, 5.1.4, 5.1.6). */
export function addressReason({ details, isTransient }: ReplyCodes): BounceReason | undefined {
  return !isTransient && details.some((code) => /^1\.[1346]$/.test(code)) ? 'mailbox_not_found' : undefined;
}

/** Returns the reason of an enhanced code that is not listed, by its subject. */
function reasonBySubject(detail: string, hasWords: boolean): BounceReason | undefined {
  if (detail.startsWith('6.')) return 'content_rejected';
  // Exchange Online uses these for banned addresses and for senders that exceed its limits.
  if (/^7\.[67]\d\d$/.test(detail)) return 'reputation_block';
  if (!detail.startsWith('7.')) return undefined;
  return hasWords ? 'reputation_block' : 'policy_block';
}
