import { LANGUAGES } from './languages.ts';
import type { Rule } from './phrases.ts';

/** Rules about the sender, its host, name and rate: the first half, in order. */
export const SENDER_RULES: readonly Rule[] = [
  {
    // Postmark 406, SES, SparkPost, SendGrid, Mailgun, Mailjet.
    reason: 'provider_suppressed',
    phrases: [
      'suppress(?:ed|ions?|ing)\\b|marked as inactive|406: inactive|inactive recipients? (?:are|have)',
      '(?:previously|repeatedly|recently) (?:hard )?bounced',
      '(?:history of|too many|prior|previous|existing) (?:hard )?bounc|bounced address|not delivering to',
      '(?:marked|reported) your messages? as spam|unsubscribed (?:address|recipient)',
      '(?:recipient|address|user) … unsubscribed',
      '(?:unsubscribe|bounce|opt ?out|not (?:mail|email|contact|send)) list',
    ],
  },
  {
    // The recipient's own list of senders, in the terms of NetEase, Exchange Online and Mimecast.
    reason: 'policy_block',
    phrases: [
      '(?:user|customer|personal|private|recipient|tenant|organi[sz]ation)s? (?:address )?(?:{list})',
      'user (?:is )?in black ?list|blocked senders? (?:list|policy)|header based (?:manually )?blocked',
      'envelope (?:blocked|rejected)',
    ],
  },
  {
    // Exchange's default template: "… may not exist, they may be blacklisted, or missing the proper dns".
    reason: 'mailbox_not_found',
    phrases: [
      'domain may not exist, they may be|@5\\.4\\.1 [^.]{0,80}access denied|reserved by rfc',
      'recipient address(?:es)? rejected ?: access denied',
      '@.\\.1\\.[13] .*valid rfc|recipient address [^.]{0,40}valid rfc',
    ],
  },
  {
    // Links in the content, not the sender, are on a list.
    reason: 'spam_block',
    phrases: [
      '@links|surbl|uribl|spam classification|mail content denied',
      '(?:u[rx]i|url|link|web ?site)s?\\b … (?:{list}|listed|blocked|spam|malicious)',
      '(?:listed|blocked|spam\\w*|malicious|suspicious|bad) (?:u[rx]i|url|link)s?\\b',
    ],
  },
  {
    // Block lists and reputations. Their sites are `@list` (SITES in bounces.ts).
    reason: 'reputation_block',
    phrases: [
      '@list|spam ?haus|spam ?cop|sorbs|sender ?base|barracuda(?: ?central| reputation)|abusix|invaluement',
      'spamrats|talos\\b|sbrs\\b|[a-z]{0,8}bls?\\b|(?:con|hvu|rly|dyn):[a-z]\\d|(?:bl|es|ipbl|cxbl)0\\d{3,5}\\b|cxbl\\b|(?<!may be )black ?list',
      '(?:block|deny|reject|exploits block|policy block) ?list|black ?hole|reputation\\b|blocked using',
      'unsolicited … originating from|unusual rate of|@4\\.7\\.650 |user complaints',
      'complaints? (?:we )?(?:received|about|regarding|from)|complaint rate|\\btss?\\d\\d\\b',
      'ip= ?@ip (?:none|a problem|reason)',
      ...LANGUAGES.blockList,
    ],
  },
  {
    // The sender's host is considered a spam source, or one that should not send directly.
    reason: 'reputation_block',
    phrases: [
      'blocked for (?:spam|abuse|spamming)|for (?:spam|spamming) (?:issues|activity)|incident de spam',
      'comcast block for|spammers?\\b|spam ?(?:ip|source|server|host|sender|network)s?\\b',
      '(?:source|origin) of (?:spam|junk|u[bc]e)',
      '(?:sending|sends|sent|relays?) (?:out )?(?:too much )?(?:spam|junk|u[bc]e)|bounce attacks?',
      'too much (?:spam|junk|unsolicited) … (?:from|ip)|\\bip\\b … for attempting to|spam abuse detected',
      'spam from (?:your|this|the|@ip)|(?:open|insecure) (?:mail )?relay\\b(?! is not| not)',
      'too many invalid recipients|directory harvest|dictionary attack',
      '(?:dynamic|residential|dial ?up|generic|consumer|dhcp)(?:ally)?(?: assigned)? (?:ip|host|address|range|rdns|pool|access|connection|network|user)',
      'banned sending|messages? from @ip were not sent(?!: the mail server ip connecting has exceeded)',
      'part of their network|mail from your (?:location|network|host|server|ip|country|provider|isp)',
      'your access to submit messages',
      'your (?:host|server|network|system|mta|mail server|isp|country) … (?:{blocked})',
    ],
  },
  {
    // Reverse DNS and HELO.
    reason: 'reputation_block',
    phrases: [
      '\\bptr\\b|\\brdns\\b|\\bfcrdns\\b',
      'reverse (?:dns|host ?name|lookup|resolution|record|entry|name|address|ip)|inverse (?:dns|lookup)',
      'reverse\\w* … (?:dns|resol)|can ?not (?:find|resolve|verify|determine) your (?:host ?name|reverse|ip|name)',
      '(?:find|resolve|verify) your host ?name|host ?name … (?:not match|mismatch)|forward dns|forward confirm',
      'over ipv6|ipv6 sending|@(?:501|5\\.[05]\\.[04]) invalid (?:domain|host) name',
      'ip name (?:lookup failed|possibly forged)|possibly forged|ip (?:address )?not resolve',
      '(?:helo|ehlo)\\b … (?:reject|invalid|not|bad|mismatch|need|requires|forged|denied|access|refused|argument|violation)',
      '(?:bad|invalid|forged|fake|empty|your|in|for) (?:helo|ehlo)|client host rejected(?!: too many)',
      'host network not allowed|host network, not allowed',
      ...LANGUAGES.reverseDns,
    ],
  },
  {
    // Greylisting: the first attempt of any sender is delayed.
    reason: 'rate_limited',
    phrases: ['exceeded the rate limit|gr[ea]y ?list|sqlgrey|postgrey', ...LANGUAGES.greylist],
  },
  {
    reason: 'authentication_failure',
    phrases: [
      '\\bdmarc\\b',
      '\\b(?:dkim|domain ?keys|arc)\\b(?! signature: v) … (?:{unproven})',
      '(?:{disproving}) … \\bdkim\\b(?! signature: v)',
      '\\bspf\\b … (?:{unproven})',
      '(?:{disproving}) … \\bspf\\b',
      '@spf|sender policy framework|sender ?id\\b(?! [a-z0-9]*\\d)|purported responsible',
      'not (?:allowed|permitted|authori[sz]ed|designated) to (?:use|send (?:e?mail )?(?:from|for|as|on behalf|in the name))',
      'not (?:a )?(?:permitted|designated|authori[sz]ed) (?:sender|host|ip|to send (?:e?mail )?from)',
      'unauthenticated (?:e?mail|message|sender)|(?:e?mail|message|sender) … unauthenticated|must be authenticated',
      'not sent over a tls|(?:smtp|server) authentication',
      'authentication (?:checks?|information|level|results?|policy|requirements?)|sender authentication',
      'domain authentication|not signed\\b|mismatch\\w* … client ip|mail ?from … mismatch',
      'header … (?:not match|mismatch) … (?:envelope|mail from)|(?:not|is not) aligned|alignment|anti ?spoof',
      'spoof(?:ed|ing)?\\b|forged|forgery|mail from not owned|not owned by (?:the )?(?:authenticated )?user',
      'mi:(?:spf|dma)|verify mailfrom|invalid ip for sending|unauthori[sz]ed sender|nicht berechtigt … zu senden',
    ],
  },
  {
    reason: 'rate_limited',
    phrases: [
      'too many (?:(?:{parallel}) ){0,3}(?:connections?(?! fail)|sessions?|requests?|recipients?|deliver\\w+|attempts|rcpts?)',
      'too many (?:(?:{parallel}) ){0,3}(?:invalid|unknown|bad|unauthenticated|errors|commands|login)',
      'too many (?:e?mails?|messages?)\\b(?! (?:in|on) (?:the |his |her |your |their )?(?:server|mailbox|inbox|account))',
      'per transaction|too much (?:mail|fail|traffic|recipient)|too (?:fast|quickly|frequent\\w*|often)',
      'excessive (?:rate|mail|conn|number)|rate ?(?:over ?)?limit|too much load|rate control|throttl|slow(?:ing)? down',
      '(?:traffic|mail|message|connection|sending|receiving) (?:rate|frequency|volume)\\b|frequency limited',
      'at a rate|per (?:second|minute|hour|day)\\b|flood|back ?off\\b|peak … limit|volume (?:limit|exceed)|unexpected volume',
      '(?:exceed\\w*|reach\\w*|over) … (?:limit|quota|maximum|max|number|rate|threshold|allowed) … (?:connections?(?! timed| refused)|session|messages? (?:per|sent|for|from|in|an)|e?mails? (?:per|sent|for|from|in)|hour|minute|per day|daily|sending|send|recipients|rcpts?|transaction|today)',
      '(?:connections?|sessions?|hourly|daily|sending|send|per hour|per minute|per day|relay) (?:rate |sending |volume |count )?(?:limit|quota|maximum)\\b(?! … mailbox)',
      '(?:recipients?|messages?) (?:rate |count )?(?:limit|maximum)\\b(?! … mailbox)',
      '(?:recipient|user|sender|domain|host|ip|you)\\b … exceeded (?:their|its|your|the|his) limit',
      'exceed\\w* … threshold|exceeded its quota for sending',
      'max\\w* (?:number of )?(?:messages?(?! size| length)|connections?|recipients?|sessions?|rcpts?)',
      '(?:hl|mi|rp):(?:icc|ifc|mep|rep|dmc|ccl|cel|drc|sfq|qrc|stc|trc|rcl|frl|itc)\\b',
      ...LANGUAGES.rateLimited,
    ],
  },
  {
    // The address or the network is blocked, in plain words.
    reason: 'reputation_block',
    phrases: [
      '(?:your|this|the|client|source|sending|sender|connecting|originating) (?:ip|address ip|host|server|network|mail server)\\b … (?:{blocked})',
      '\\bips?\\b(?: address| addresses| range)?(?: @ip)? (?:{is})? ?(?:{blocked}|not (?:yet )?(?:in|white))',
      '(?:e?mails?|messages?|connections?|access|mail server|connect|host|client|relay|server|traffic)(?: from| by| of| at)?(?: the)?(?: ip)?(?: address)?:? @ip … (?:{blocked}|not yet authori[sz]ed|were not sent)',
      'blocked ip\\b|@ip (?:{is})? ?(?:{blocked}|not (?:yet )?authori[sz]ed|suspended)',
      '(?:block(?:ed|ing)|banned|reject(?:ed|ing)|denied|refus(?:ed|ing)|not accept\\w*) … (?:from|by|of|for|your|this|source) (?:your |this |the )?(?:ip\\b|@ip|host|network|server|provider|isp|country)',
      'emails? envoyes … bloques|bloques? par nos|from your (?:ip|network|host|country)|geographic|geo ?ip',
      '(?:host|ip|server|network|ip address) (?:is )?(?:in|on) (?:our|my|the|a)\\b|\\basn\\b|countr(?:y|ies)\\b|(?:hl|dt|mi):(?:ipb|rbl|ihu|spb)\\b|ip in black|aup#|(?<!not )listed (?:at|in|on|by) ',
      'is listed\\b|blocked see|(?<!not )(?<!not be )found (?:in|on) (?:one or more|the|a)',
      '(?:blocked|banned|rejected) by (?:our )?(?:isp|abuse)',
      '(?:not (?:allowed|permitted|authori[sz]ed) to|may not) connect',
      'connections? (?:from @\\w{2,4} )?(?:{is})? ?(?:denied|rejected|blocked|not (?:allowed|accepted|permitted))',
      'not authori[sz]ed to send email directly|bypassing service provider|all messages from @ip',
      'permanently deferred|not accepting (?:connections?|mail) from|outbounds? disabled',
      '(?:host ?name|host|client|relay|server) (?:{is})? ?not authori[sz]ed',
      ...LANGUAGES.network,
    ],
  },
  {
    // The sender's address or domain is refused.
    reason: 'reputation_block',
    phrases: [
      '@.\\.1\\.8 |(?:{sender}) … (?:rejected: )?domain (?:not found|of sender|not exist|invalid|unknown)|domain of sender',
      'unresolvable (?:rfc|sender|from|hosts)|unrout\\w+ sender|sender (?:domain|address) … (?:not resolve|not exist|dns|\\bmx\\b)',
      '(?:{sender}) (?:{is})? ?(?:rejected|refused|denied|blocked|not allowed|not accepted|not in (?:my|our)|banned|unknown|not exist|verif\\w+ fail\\w*|verify failed|restricted)(?! by (?:the )?(?:recipient|user))',
      '(?:bad|invalid|unverified|unknown|unregistered|illegal|blocked|banned) (?:outbound )?(?:sender|from:)',
      'emetteur invalide|bad ?mail ?from|sender is rejected|sender (?:was )?blocked|sender verify',
      'unregistered domains|email address is not verified|domain is invalid\\. provide a valid from',
      'from: domain is invalid',
      ...LANGUAGES.sender,
    ],
  },
];
