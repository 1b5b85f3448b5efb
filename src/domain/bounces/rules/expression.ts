/**
 * Phrases by topic: sources of regular expressions for the words of a reply (`words.ts`), in lower case. ` … ` is a gap of up
 * to 40 characters within a sentence; `{name}` is one of LISTS. `@list`, `@links`, `@spf`, `@host`, `@ip` and `@5.1.1` are
 * placeholders for a block list's site, a list of links, a page about SPF, a host, an address and a code.
 */
export type Phrases = Readonly<Record<string, readonly string[]>>;

/** Synonyms in phrases. */
const LISTS: Readonly<Record<string, string>> = {
  who:
    'users?|user ?names?|user ?ids?|rec[ei]{1,2}pi[ea]nts?|rcpts?|receivers?|mailbox(?:es)?|accounts?|' +
    '(?<!(?:from|return|reply|envelope|source|ip|sender|host)(?: e?mail)? )(?:e?mail)?address(?:es)?|addressees?|inbox|local ?part|alias(?:es)?|subscriber|customer|mail ?drop|employee',
  sender:
    '(?:sender|envelope|from|return path|reverse path|mail ?from|originator)(?: email)?(?: address| domain| host)?',
  is: 'is|was|are|has been|have been|has|being|currently|now|temporarily|permanently',
  bad:
    'no such|unknown?|invalid|malformed|illegal|bad|incorrect|wrong|non ?existent|non ?existing|undeliverable|unrecogni[sz]ed|' +
    'unroutable|unavailable|no valid|not a valid|not a known|not an existing|no',
  missing:
    'unknown|not present|not correct|incorrect|not in service|not found|not (?:be )?found|not known|not exists?|' +
    'not existing|non ?existent|not listed|not recogni[sz]ed|not valid|invalid|(?<!temporarily )not available|' +
    '(?<!temporarily )unavailable|undeliverable|not registered|not local|not match|unrecogni[sz]ed|' +
    'no longer (?:available|valid|exists?|here|on server|at)|not accepting mail here',
  ended:
    'disabled|inactive|inactivated|suspend\\w*|suspension|deactivated|de activated|locked(?! by another)|' +
    'on hold|(?:switched|turned) off|frozen|closed|archived|' +
    'discontinued|terminated|cancell?ed|dormant|retired|not (?:yet |been |yet been )?(?:active|activated|enabled)|abandoned|blocked|' +
    'banned|no longer (?:active|in (?:use|service)|us(?:ed|ing)|accept\\w*|receiv\\w*)|not in use|' +
    '(?<!message )expired|unused|delinquent|barred|restricted',
  blocked:
    'block(?:ed|ing|s)?|bann?ed|bloqueed?|black ?list(?:ed)?|block ?list(?:ed)?|deny ?list(?:ed)?|reject(?:ed|s)?|' +
    'den(?:ied|ies|y)|refus(?:es|al)|(?<!connection )refused|listed|not accepted|forbidden|not allowed|not authori[sz]ed|not permitted|found in|prohibited|disallowed',
  store: 'quota|storage|disk ?(?:space|usage)|space|capacity|mailbox|mbox|inbox|mail ?dir|mail ?folder|dropfile',
  find: 'validate|verify|find|locate|identify|recogni[sz]e|resolve|look ?up',
  list: '(?:(?:dns|r|rhs)bl|black ?list|block(?:ed)? ?list|deny ?list|@list)(?:s|ed|ing)?\\b',
  unproven:
    'fail|invalid|not|missing|require|none|verif|bad|unsigned|unauth\\w*|prohibit|reject|error|policy|sign|record|' +
    'deny|denied|violation|check|mismatch|forbid|hard|soft|must',
  broken:
    'fail\\w*|errors?\\b|down\\b|offline|crash\\w*|out of order|not (?:be )?(?:available|reached|contacted|responding|respond)',
  owner:
    'recipients?|(?:this|the|target|destination) (?:user|address|mailbox)|mailbox(?:es)?(?! unavailable)|addressees?|user or domain|sending to|compan(?:y|ies)|corporate|organi[sz]ation\\w*|tenant|administrators?|destination|internal',
  identity:
    '(?:sender|(?<!(?:e?mail|message|received|messages|came) )from|mail ?from|return path|envelope from|reply to|sending(?! (?:server|host|ip|mta|network|system))|outbound|identity)(?: e?mail)?(?: profile| identity| address| domain| field| header)*|' +
    '(?<!(?:recipient|destination|rcpt) )(?:domain(?! of)|e?mail address)',
  unconfirmed:
    '(?:not|never) (?:yet )?(?:been )?(?:verified|confirmed|validated|approved|registered|authori[sz]ed|proven|activated|match\\w*|white ?listed)|' +
    'un(?:verified|confirmed|registered|approved)|' +
    '(?:must|has to|have to|needs? to|should) (?:first )?be (?:verified|confirmed|validated|approved|registered|completed|activated)|' +
    '(?:pending|awaiting) (?:verification|confirmation|approval|validation|review|activation)',
  sending:
    'sending(?! (?:server|host|ip|mta|network|system))|sends?|sent|sender|outgoing|outbound(?! sender)|submission|relay(?:ing)?|smtp (?:user|account|relay|access)',
  submission:
    'sending(?! (?:server|host|ip|mta|network|system))|outgoing|outbound(?! sender)|submission|relay(?:ing)? service|smtp (?:user|account|relay|access)',
  period: 'daily|hourly|monthly|weekly|24 hours?|per (?:user|domain|account)',
  allowance: 'quotas?|limits?|caps?|allowance|allotment|volume|maximum',
  credit: 'credits?(?! ?card)|balance|funds',
  spent:
    'exc?eed\\w*|exhaust\\w*|reach\\w*|used(?: up)?|deplet\\w*|insufficient|not enough|not sufficient|out of|ran out|over|above|hit|consumed|zero|low|lapsed',
  halted:
    'suspend\\w*|suspension|disabled|deactivated|blocked|locked|frozen|terminated|cancell?ed|paused|revoked|stopped|expired|ended|lapsed|' +
    '(?:switched|turned) off|on hold|held|under review|restricted|banned|past due|not (?:yet |been |yet been )?(?:active|activated|enabled)|inactive|suspendu|gesperrt|suspendid\\w|bloque\\w*',
  parallel: 'concurrent|simultaneous|open|new|smtp|tls|parallel|active|related',
};

const GAP = '[^.a-z0-9@](?:[^.]|\\.(?! )){0,40}?(?<![a-z])';

/**
 * Compiles phrases into one expression. Phrases start at a word. Gaps and repetitions are bounded, so matching takes linear
 * time.
 */
export function expression(phrases: readonly string[]): RegExp {
  return new RegExp(`(?<![a-z@])(?:${phrases.map(source).join('|')})`);
}

function source(phrase: string): string {
  return phrase.replace(/\{([a-z]+)\}/g, (_, name: string) => LISTS[name] ?? '').replaceAll(' … ', GAP);
}
