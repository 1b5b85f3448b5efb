import { RULES } from './rules.ts';
import type { BounceReason } from '../email/email.ts';
import { SUPPRESSING } from '../email/suppression.ts';

/** Longest part of a reply that is read, in UTF-16 units; servers need a third of it. */
const MAX_REPLY_LENGTH = 2_000;

/** Classifies a bounce: `unknown` when its reply states no reason; `suppress` when the recipient is to be suppressed. */
export function classifyBounce(response: string): { reason: BounceReason; suppress: boolean } {
  const reason = statedReason(response) ?? 'unknown';
  return { reason, suppress: SUPPRESSING[reason] };
}

/**
 * Returns the reason in a receiving server's reply: by its words, else by its enhanced code, else by its basic code.
 * Undefined without any, so that a caller may use other facts.
 * @param response a reply as a provider or an SMTP client quotes it: in any case and language, on one line or many
 */
export function statedReason(response: string): BounceReason | undefined {
  const reply = response.slice(0, MAX_REPLY_LENGTH);
  const words = readableWords(reply);
  const reason = RULES.find((rule) => rule.words.test(words))?.reason ?? reasonByCode(reply);
  return reason !== undefined && !SUPPRESSING[reason] ? reason : reasonInPlace(reason, reply, words);
}

/** The server refused in reply to MAIL FROM, HELO or EHLO. */
const OF_SENDER = /(?:in reply to|after) (?:pipelined )?(?:mail from|helo|ehlo)/i;
const OF_CLIENT = /refused to talk to me|after initial connection/i;

/**
 * Corrects the reason by the stage of the conversation. Before RCPT the server refuses the sender, and a temporary refusal
 * without a stated rule is throttling. Neither is the recipient's fault.
 */
function reasonInPlace(reason: BounceReason | undefined, reply: string, words: string): BounceReason | undefined {
  if (OF_SENDER.test(reply)) return 'reputation_block';
  if (OF_CLIENT.test(reply) && reason !== 'dns_failure') return 'reputation_block';
  const passing = words.startsWith('@4') && (reason === undefined || reason === 'policy_block');
  return passing ? 'rate_limited' : reason;
}

/** Replacements for URLs and host names in a reply: names of block lists, and help pages for one error. */
const SITES: readonly (readonly [RegExp, string])[] = [
  [/uribl|surbl/, '@links'],
  [
    /spamhaus|spamcop|sorbs|barracudacentral|\/reputation|senderbase|abuseat|abusix|dnsbl|\bd?rbl|blocklist|blacklist|blackhole|senderscore|uceprotect|csi\.cloudmark|sender\.office|mailspike|nixspam|manitu|550-bl/,
    '@list',
  ],
  [/openspf|spf\.pobox/, '@spf'],
  [/answer=6596|nosuchuser/, 'user unknown'],
  [/disableduser/, 'account disabled'],
  [/overquota/, 'mailbox full'],
  [/receivingrate/, 'receiving rate'],
  [/p=unsolicited(?:ratelimit|ip)/, 'ip reputation'],
];

function siteWord(site: string): string {
  const name = site.toLowerCase();
  const word = SITES.find(([pattern]) => pattern.test(name))?.[1];
  return ` ${word ?? (name.startsWith('http') ? '' : '@host')} `;
}

/** Enhanced codes; subject and detail in a group. */
const ENHANCED_CODES = /(?<![\w.])[45]\.(\d{1,3}\.\d{1,3})(?!\w|\.\d)/g;

/** Removes the accent of a Latin letter. */
function plainLetter(letter: string): string {
  if (letter === '’') return "'";
  if (letter === 'ß') return 'ss';
  if (letter === 'ł' || letter === 'Ł') return 'l';
  if (letter === 'ё' || letter === 'Ё') return 'е';
  return letter.normalize('NFKD').charAt(0);
}

/** Boilerplate of Gmail, qmail, IronPort and relays that contains words of a reason without stating it. */
const ASIDES = [
  'to reduce the amount of spam sent to gmail',
  'to (?:best )?protect our users from spam(?: and phishing)?',
  '(?:go to )?about smtp error messages(?: and review rfc \\d{3,4} specifications)?',
  "i'm not going to try again; this message has been in the queue too long",
  'unknown address error|other mail system problem',
  '\\(in reply to [^)]{1,40}\\)|(?:rfc822|x-unix|smtp);',
];
const ASIDE = new RegExp(ASIDES.join('|'), 'g');

/** The point at which a relay starts to quote the server that refused. */
const QUOTED =
  /^.{0,1000}(?:the error that the other server returned was|the response (?:from the remote server )?was):/s;
const QUOTING =
  /(?:(?<!client )host [^ ]{1,80} @ip|remote server|server at(?: @host)?(?: @ip)?|smtp server @ip)(?: said:?| refused to talk to me:?| returned| refused to accept your message|:(?= ))/g;
const EXIM = /smtp error from remote (?:mail )?server(?: after [a-z ]{1,20})?:?(?: size=\d{1,12})?:/g;

/**
 * Normalizes a reply to words: lower-case, without accents, quotation marks, codes, addresses and boilerplate. "doesn't"
 * becomes "not", a site its replacement in SITES, an IPv4 address `@ip`; the first basic code and the first enhanced code
 * lead.
 */
function readableWords(reply: string): string {
  const words = reply
    .replace(/&(?:lt|gt|quot|amp|nbsp|#39|#34);/gi, ' ')
    .replace(/[\u00C0-\u024F\u0401\u0451\u2019\uFF01-\uFF5E]/g, plainLetter)
    // A URL, an email address, an IPv4 address, host names of any length under well-known domains and of three labels.
    .replace(/https?:\s?\/\/ ?[^\s<>"']{1,300}/gi, siteWord)
    .replace(/(?<![^\s<>()[\]"',;:=])[^\s<>()[\]"',;:=@]{1,100}@[^\s<>()[\]"',;:]{1,255}/g, ' ')
    .replace(/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)/g, ' @ip ')
    .replace(/(?<![\w.-])(?:[\w-]{1,63}\.){1,8}(?:com|net|org|edu|gov|info|biz|mil|zap)(?![\w-])/gi, siteWord)
    .replace(/(?<![\w.-])(?:[\w-]{1,63}\.){2,8}(?:[a-z]{2,12}|[A-Z]{2,3})(?![\w-])/g, siteWord)
    // Codes, also those at the start of each line of a long reply.
    .replace(/(?<![\w.])(?:[245]\d\d[-\s])?#?[245]\.\d{1,3}\.\d{1,3}(?!\w|\.\d)/g, ' ')
    .replace(/(?<![\w.])[245]\d\d[-\s]/g, ' ')
    // Exchange and Postmark write NamesLikeThis.
    .replace(/([a-z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(QUOTED, '')
    .replace(ASIDE, ' ')
    .replace(/n't(?![a-z])/g, ' not')
    .replace(/'s(?![a-z])/g, '')
    .replace(/[^\p{L}\p{M}\p{N}@.:;,=#!?%&+$]+/gu, ' ')
    .replace(/ ([.:;,])(?![a-z])/g, '$1')
    .replace(/(?<![a-z])(?:can ?not|ca not)(?![a-z])/g, 'can not')
    .replace(/(?<![a-z])(?:does|do|did) not(?![a-z])/g, 'not')
    .replace(/(?<![a-z])(e|mail) (?=mail|box)/g, '$1')
    .replace(EXIM, ' ')
    .replace(QUOTING, ' ')
    .trim();
  const codes = [basicCode(reply), reply.match(ENHANCED_CODES)?.[0]].filter((code) => code !== undefined);
  return [...codes.map((code) => `@${code}`), words].join(' ');
}

/** Reasons by enhanced code, without its class: RFC 3463, the registry of RFC 5248, and Exchange's own codes. */
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

/** Reasons by basic code (RFC 5321 §4.2.3, RFC 4954, RFC 7504); 550 and 554 are used for everything. */
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
  556: 'dns_failure',
};

function reasonByCode(reply: string): BounceReason | undefined {
  for (const [, detail = ''] of reply.matchAll(ENHANCED_CODES)) {
    const reason = REASON_BY_DETAIL.get(detail) ?? reasonBySubject(detail);
    if (reason) return reason;
  }
  const basic = basicCode(reply);
  return basic === undefined ? undefined : BASIC[basic];
}

/** Returns the first number at the start of a reply. */
function basicCode(reply: string): string | undefined {
  return /(?:^|[:;'"<] ?)([45]\d\d)(?![\w.])/.exec(reply)?.[1];
}

/** Returns the reason of an unlisted enhanced code by its subject. */
function reasonBySubject(detail: string): BounceReason | undefined {
  if (detail.startsWith('6.')) return 'content_rejected';
  // Exchange Online: banned addresses, and senders over a limit of theirs.
  if (/^7\.[67]\d\d$/.test(detail)) return 'reputation_block';
  return detail.startsWith('7.') ? 'policy_block' : undefined;
}
