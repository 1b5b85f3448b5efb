import type { ReplyCodes } from './codes.ts';

/** Host name suffixes of block list operators. A word such as "spamhaus" in another name has no meaning. */
const LIST_OPERATORS =
  'spamhaus\\.(?:org|net|com)|spamcop\\.net|sorbs\\.net|barracudacentral\\.org|senderbase\\.org|abuseat\\.org|abusix\\.\\w{2,4}|' +
  'senderscore\\.(?:com|org|net)|uceprotect\\.net|csi\\.cloudmark\\.com|csi\\.mimecast\\.org|sender\\.office\\.com|mailspike\\.\\w{3}|nixspam\\.\\w{3}|' +
  'manitu\\.net|trendmicro\\.com|proofpoint\\.com';

/** Placeholders for URLs and host names in a reply: sites of block lists, and help pages about one error. */
const SITES: readonly (readonly [RegExp, string])[] = [
  [/(?:^|[/.])(?:uribl\.com|surbl\.org)(?![\w-])|^http.*(?:surbl|uribl)/, '@links'],
  [new RegExp(`(?:^|[/.])(?:${LIST_OPERATORS})(?![\\w.-])`), '@list'],
  [/^http.*(?:\/reputation\b|dnsbl|\brbl|blocklist|blacklist|550-bl)/, '@list'],
  [/(?:^|[/.])openspf\.(?:org|net)|spf\.pobox\.com/, '@spf'],
  // GMX, WEB.DE and IONOS.
  [/^http.*[?&]c=h[di](?![a-z])/, 'invalid header'],
  [/^http.*(?:answer=6596|nosuchuser)/, 'user unknown'],
  [/^http.*disableduser/, 'account disabled'],
  [/^http.*overquota/, 'mailbox full'],
  [/^http.*receivingrate/, 'receiving rate'],
  [/^http.*p=unsolicited(?:ratelimit|ip)/, 'ip reputation'],
];

/** Matches a host name under a known top-level domain, except two letters that are an English word and may begin a sentence. */
const KNOWN_HOST =
  /(?<![\w.-])(?:[\w-]{1,63}\.){1,8}(?:com|net|org|edu|gov|info|biz|mil|zap|example|test|invalid|local|app|dev|shop|online|cloud|email|xyz|(?!(?:am|an|as|at|be|by|do|go|he|if|in|is|it|me|my|no|of|on|or|so|to|up|us|we)(?![\w-]))[a-z]{2})(?![\w-])/gi;

function siteWord(site: string): string {
  const name = site.toLowerCase();
  const word = SITES.find(([pattern]) => pattern.test(name))?.[1];
  return ` ${word ?? (name.startsWith('http') ? '' : '@host')} `;
}

/** Letters that Unicode does not decompose, or decomposes to more than one. */
const PLAIN_LETTERS: Readonly<Record<string, string>> = {
  '’': "'",
  ß: 'ss',
  ł: 'l',
  ё: 'е',
  ø: 'o',
  æ: 'ae',
  ı: 'i',
  đ: 'd',
};

/** Removes the accent of a Latin letter. */
function plainLetter(letter: string): string {
  return PLAIN_LETTERS[letter.toLowerCase()] ?? letter.normalize('NFKD').charAt(0);
}

/** Boilerplate of Gmail, qmail, IronPort and relays that contains words of a reason without stating that reason. */
const ASIDES = [
  'to reduce the amount of spam sent to gmail',
  'to (?:best )?protect our users from spam(?: and phishing)?',
  '(?:go to )?about smtp error messages(?: and review rfc \\d{3,4} specifications)?',
  "i'm not going to try again; this message has been in the queue too long",
  'unknown address error|other mail system problem',
  '(?:@ip )?(?:does not like recipient|failed after i sent the message)\\.? remote host said:?|giving up on @ip',
  'delivery temporarily suspended:',
  'permanent failure for one or more recipients(?! \\( :blocked)',
  '(?:please )?contact (?:your|the) (?:(?:system|mail|e-?mail|network|domain) )?(?:administrator|admin|help ?desk|support)\\b(?: for (?:further )?(?:assistance|help|details|information))?',
  '\\(in reply to [^)]{1,40}\\)|(?:rfc822|x-unix|smtp);',
];
const ASIDE = new RegExp(ASIDES.join('|'), 'g');

/** Postfix begins every refusal after RCPT with words about the recipient; the reason follows. */
const POSTFIX_RECIPIENT = /recipient address rejected: (?!access denied)([^ ]+ [^ ].*)$/s;

/** Matches the text before a relay's quotation of the refusing server. */
const QUOTED =
  /^.{0,1000}(?:the error that the other server returned was|the response (?:from the remote server )?was):/s;
const QUOTING =
  /(?:(?<!client )host [^ ]{1,80} @ip|remote server|server at(?: @host)?(?: @ip)?|smtp server @ip)(?: said:?| refused to talk to me:?| returned| refused to accept your message|:(?= ))/g;
const EXIM = /smtp error from remote (?:mail )?server(?: after [a-z ]{1,30})?:?(?: size=\d{1,12})?:/g;

function withoutEntitiesAndAccents(reply: string): string {
  const text = reply.includes('&') ? reply.replace(/&(?:lt|gt|quot|amp|nbsp|#39|#34);/gi, ' ') : reply;
  if (!/[\u0080-\uFFFF]/.test(text)) return text;
  return text.replace(/[\u00C0-\u024F\u0401\u0451\u2019\uFF01-\uFF5E]/g, plainLetter);
}

/**
 * Normalizes a reply to words: lower case, without accents, quotation marks, codes, addresses and boilerplate. "doesn't"
 * becomes "not", a site becomes its placeholder in SITES, an IPv4 address becomes `@ip`. The first basic code and the first
 * enhanced code come first.
 */
export function readableWords(reply: string, { basic, enhanced }: ReplyCodes): string {
  const words = withoutEntitiesAndAccents(reply)
    // Replaces a URL, an email address, an IPv4 address, host names under known domains and other names of three labels.
    .replace(/https?:\s?\/\/ ?[^\s<>"']{1,300}/gi, siteWord)
    .replace(/(?<![^\s<>()[\]"',;:=])[^\s<>()[\]"',;:=@]{1,100}@[^\s<>()[\]"',;:]{1,255}/g, ' ')
    .replace(/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)/g, ' @ip ')
    .replace(KNOWN_HOST, siteWord)
    .replace(/(?<![\w.-])(?:[\w-]{1,63}\.){2,8}(?:[a-z]{2,12}|[A-Z]{2,3})(?![\w-])/g, siteWord)
    // Removes codes, including those at the start of each line of a multi-line reply.
    .replace(/(?<![\w.])(?:[245]\d\d[-\s])?#?[245]\.\d{1,3}\.\d{1,3}(?!\w|\.\d)/g, ' ')
    .replace(/(?<![\w.])[245]\d\d[-\s]/g, ' ')
    // Splits the NamesLikeThis of Exchange and Postmark.
    .replace(/([a-z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(QUOTED, '')
    .replace(ASIDE, ' ')
    .replace(POSTFIX_RECIPIENT, '$1. recipient address rejected')
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
  const codes = [basic, enhanced].filter((code) => code !== undefined);
  return [...codes.map((code) => `@${code}`), words].join(' ');
}
