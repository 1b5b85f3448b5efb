import { LANGUAGES } from './bounce-languages.ts';
import type { Rule } from './bounce-phrases.ts';

/** The mailbox, the message and the way there: the second half of the rules, in order. */
export const RECIPIENT_RULES: readonly Rule[] = [
  {
    reason: 'mailbox_full',
    phrases: [
      'over ?quota|quota (?:{is})? ?(?:exceed|full|reached|violat|over|limit|exhaust|used|depass)',
      '(?:exceed\\w*|over|above|out of|beyond|hit|reached|violat\\w*|full) … quota',
      'quota … (?:exceeded|full|reached)|exceeded … (?:quota|storage|disk|allocat|mailbox|space)|email quota',
      '(?:mailbox|inbox|mail ?folder|mail ?dir|mail ?drop|account|spool|user|recipient|mail system|disk|storage|folder|letterbox)\\b … (?<!not )(?:full\\b|filled)',
      '(?:mailbox|inbox|account|user|recipient|storage|disk)\\b … (?:exceed\\w*|reached|over|out of|at|above|hit) … (?:limit|size|capacity|storage|space|allow\\w*|maximum|max)',
      '(?:mailbox|inbox|storage|inode|blocks) (?:size |space )?limit|mailbox size exceed|exhausted … (?:storage|space|quota)|full mailbox|mailbox full|mailfull',
      '(?:out of|insufficient|not enough|no|low|lack of|without|exhausted) (?:mailbox |disk |storage |system |free |user )*(?:storage|space|resources left|disk)\\b',
      '(?:no|not|without) … (?:enough|more) … (?:space|room|storage)|no (?:space|room)|space left|disk full',
      'storage allocation|storage (?:full|exhausted)|too many (?:e?mails|messages) (?:in|on)',
      'number of messages in',
      ...LANGUAGES.mailboxFull,
    ],
  },
  {
    reason: 'message_too_large',
    phrases: [
      '(?:message|e?mail|mail|content|size|attachments?|body|header|data|file|it|line)\\b … too (?:large|big|long)\\b',
      'too (?:large|big)\\b|size\\b … (?:exceed\\w*|limit|maximum|too|larger|greater|over|allowed)',
      '(?:exceed\\w*|over|above|larger|greater|bigger) … (?:size|bytes|[km]b\\b|maximum message|length|limit of limit|attachments)',
      'max\\w* (?:message |mail |e?mail |allowed |permitted |attachment |data )*(?:size|length)',
      '(?:message|mail|content) size|message (?:length )?exceeds|oversized?\\b|number of attachments',
      'header (?:size|name) limit|header limits|size limits?\\b|line limit|(?:msg|mail|message) ?size',
      'data exceeds|(?:larger|bigger) than',
      ...LANGUAGES.messageTooLarge,
    ],
  },
  {
    reason: 'dns_failure',
    phrases: ['name serv(?:ice|er) (?:error|reply)|nx ?domain'],
  },
  {
    // What a scanner for viruses calls by name.
    reason: 'content_rejected',
    phrases: [
      'virus|malware|infected|infection|trojan|\\bworm\\b|malicious|ransom|exploit|clam ?av|eicar',
      ...LANGUAGES.virus,
    ],
  },
  {
    reason: 'spam_block',
    phrases: [
      '(?:content|message|mail) filter\\w*|\\b(?:anti ?)?(?:u[bc]e|spam\\w*|junk\\w*|ham)\\b|unsolicited|spammail',
      'rspamd|bayes\\w*|scam|phish\\w*|fraud\\w*|unwanted',
      ...LANGUAGES.spam,
    ],
  },
  {
    // What no standard or no recipient allows inside.
    reason: 'content_rejected',
    phrases: [
      'attachments?\\b … (?:{blocked}|type|extension|contain|stripped|not|infected|policy|unsafe|danger)',
      '(?:{blocked}|illegal|dangerous|unsafe|unacceptable|executable|encrypted|suspicious|invalid|restricted) … (?:attach\\w+|file ?name|file ?type|extension|content type|mime|files?\\b)',
      'attached file|file (?:type|extension|name) … (?:{blocked})|macro|archive … (?:{blocked})',
      'security (?:issue|polic|reason|risk|threat|concern|violation|problem)',
      '(?:content|body|subject|text)\\b … (?:{blocked}|potential|not acceptable|unacceptable|restrict|violat|prohibit|polic|refus)(?! … spam)',
      '(?:{blocked}|invalid|prohibited|forbidden|unacceptable|offensive|inappropriate|banned|restricted|objectionable) (?:message |mail )?(?:content|word|phrase|language|subject|character)',
      '@.\\.1\\.7 [^.]{0,80}(?:address|sender)|rfc[ .]?\\d{3,4}|\\brfc\\b|malformed|\\bmime\\b',
      'not (?:comply|compliant|conform)|non ?compliant|syntax of (?:the )?(?:header|message)',
      '(?:missing|not have|multiple|duplicate[d]?|invalid|no|blank|empty|bad|several|broken|wrong|without|two|too many (?:equal )?)(?: or \\w+)?(?: an?)?(?: valid)? ?(?:message ?ids?|from|date|to|subject|sender|return path|mime|x|content|required|rfc\\w*)?:? ?headers?\\b',
      '(?:missing|multiple|duplicate[d]?|blank|empty|no) (?:a )?(?:valid )?(?:message ?id|from|date|subject|to|sender)\\b:?(?: header| field| line| addresses)?(?! such)',
      'headers?\\b … (?:error|invalid|missing|not valid|malformed|not permitted|illegal|not allowed|reject|bad|too many)',
      '(?:to|from|date): (?:header|fields?)|(?:{blocked}) (?:[a-z]{1,20} )?headers?\\b|unicode',
      'bare (?:lf|cr|newline|line ?feed|carriage)|null (?:byte|char)|8 ?bit|smtputf8|utf ?8|character sets?',
      'encoded word|control char|non ascii|line length|line limit|invalid data in message|invalid structure',
      'message (?:is )?(?:corrupt|incomplete|empty)|unparsable|unparseable|can ?not parse',
      ...LANGUAGES.content,
    ],
  },
  {
    reason: 'spam_block',
    phrases: [
      'looks like|score\\w* … (?:high|above|over|exceed)|(?:high|bad) (?:score|probability)',
      'message (?:scored|score)|bulk\\b|\\bdcc\\b|razor|pyzor|filtered|quarantin\\w*|heuristic|fingerprint|cmae',
      'classified as|dt:spm|suspicious|ofr[_ ]506|mail rejete',
      ...LANGUAGES.spam,
    ],
  },
  {
    // Only people inside may write to it, or only with encryption.
    reason: 'policy_block',
    phrases: [
      'auth(?:entication)? required(?:;| to (?:deliver|send))',
      '(?:sender|authenticated) … (?:for|to) (?:group|mailbox|public folder|this (?:group|recipient|address|list))',
      'not allowed … anonymous|resolver\\.?rst',
      '(?:not|only) … (?:members?|subscribers?|moderators?|allowed senders?) … (?:post|send|list|group)',
      'member of this (?:mailing )?list|permission to post|mailing list … (?:closed|restrict|moderat|reject|not)',
      'allowed senders list|not authori[sz]ed to send (?:e?mail |messages )?to|delivery not authori[sz]ed',
      'not accept (?:e?mail|messages) from|only accepts? (?:e?mail|messages)',
      '(?:recipient|user|addressee) (?:preferences|restrict\\w*|refus\\w*|rejects|blocks|not want|not accept)',
      '(?:rejected|refused|blocked|denied) by (?:the |this |its )?(?:recipient|user|addressee|owner|mailbox owner)(?! (?:domain|server|mail|callout))',
      '(?:recipient|user) (?:has |have )?(?:rejected|refused|blocked) (?:your|this|the)|banned recipient',
      'mailbox … restricted|bad ?rcptto|access denied, rejected by',
    ],
  },
  {
    // Our own log-in or encryption is at fault, not the recipient.
    reason: 'authentication_failure',
    phrases: [
      'auth(?:entication)?\\b … (?:required|failure|failed|invalid|incorrect|not allowed|not authenticated|mechanism|type)',
      '(?:invalid|incorrect|failed|unrecognized) (?:authentication|credentials)',
      'authentification (?:requise|invalide)|not authenticated|failed to (?:authenticate|disabled)',
      'user ?name and password|application specific password|please log in|invalid credentials|identity changes',
      'tls\\b|ssl\\b|starttls|encryption|certificate|dnssec|tlsa|dane\\b|high strength ciphers',
    ],
  },
  {
    reason: 'mailbox_inactive',
    phrases: [
      '(?<!sender )(?<!sender s )(?<!your )(?:{who}|email account|status|subscription|domain account)\\b … (?:{ended})',
      '(?:disabled|inactive|suspended|deactivated|locked|closed|frozen|dormant|expired|blocked|terminated|unused|archived) (?:{who}|email)\\b',
      '(?:is|was|has been) (?:now |currently |temporarily |permanently )?(?:disabled|deactivated|suspended|inactive|discontinued)',
      'not (?:currently )?active|inactiv\\w*|mail (?:receiving |is )?disabled|not (?:currently )?in use',
      ...LANGUAGES.mailboxInactive,
    ],
  },
  {
    reason: 'mailbox_not_found',
    phrases: [
      '(?:no such|unknown|invalid) (?:user|mailbox|recipient|local part)\\b(?! (?:domain|host))',
      '(?:this|that) (?:email )?address … not (?:receive|accept)',
      '(?:user|mailbox|recipient|account) (?:{is})? ?(?:unknown|not found|not exist)',
    ],
  },
  {
    // Names that do not resolve, and servers that do not answer.
    reason: 'dns_failure',
    phrases: [
      '(?<!relay from )(?:host|domain)(?: or domain)?(?: names?)? (?:{is})? ?(?:unknown|(?:could )?not (?:be )?(?:found|resolved?|exist\\w*|known|valid|recogni[sz]ed|reachable)|not (?:exist|resolve|have|accept)|invalid|lookup fail\\w*|expired|no longer|has no)',
      '(?:unknown|invalid|no such|illegal|bad|non ?existent|unresolvable|unroutable|unrouteable|undeliverable)(?: email| recipient| destination| mail| remote)? (?:host|domain|mail domain|dns)\\b',
      '(?:bad|invalid|unknown) destination (?:system|host|domain)|host lookup|mail server … not be found|nx ?domain',
      'name (?:service|server)\\b|name (?:or service )?not (?:known|resolved)|no such domain',
      'resol(?:ve|ving|ution) … (?:fail|host|domain|error|mx)',
      '(?:fail\\w*|could not|can not|unable to|error) … resol(?:ve|ving|ution)',
      '\\bmxs?\\b … (?:record|found|lookup|null|not|no|error|fail|missing|host|points)',
      '(?:no|null|missing|invalid) (?:valid )?(?:mx|a record|mail exchange\\w*|mail servers?|dns)\\b|nullmx',
      'dns (?:error|lookup|query|fail|server|problem|type|entr|record)|dns\\. non',
      '\\bdns\\b … (?:fail|error|not|non ?existent)|lookup (?:fail|error|of)|unrout\\w+|no route to',
      'routing (?:error|fail|loop)',
      '(?:host|server|network|destination|domain) … (?:not reachable|unreachable|not respond|not be reached|down\\b)',
      'no valid hosts|could not be reached|no (?:answer|response) from',
      'connection (?:with @host )?(?:is |was )?(?:broken|refused|timed|time ?out|reset|dropped|lost|failed|is broken|could not)',
      '(?:un|not )?able to (?:establish|connect)|can not connect|could not (?:connect|initiate|establish)',
      '(?:lost|broken) connection|failed to connect|conversation with|did not accept our requests',
      'operation timed out|socket error|network error|all hosts|establish an? smtp|@host (?:is )?(?:not exist|unknown|not found)|(?:domain|host) [^ ]{1,63} (?:is )?(?:unknown|(?:could )?not (?:be )?(?:found|exist))|@.\\.4\\.31[02] ',
      '(?:mail|routing|forwarding) loop|hop count|too many hops|exceeded \\d{1,5} hops|loops back|points? back to',
      'not (?:accept|receive|handle) (?:any )?(?:e?mail|messages)(?! from| (?:to|for) th)',
      'no mail (?:is )?accepted|system not accepting network messages|mail enabled subscriptions',
      'could not find a gateway',
      ...LANGUAGES.dnsFailure,
    ],
  },
  {
    reason: 'mailbox_not_found',
    phrases: [
      '(?:{who}|e?mail|destination|id|person|name|group)\\b … (?:{missing})',
      '(?:{bad})(?: or \\w+)?(?: such| an?| valid| final| delivery| email| mail| local| destination| recipient| user| remote| smtp| forward path)* ?(?:{who}|destination|e?mail addresses?|here|person|one)\\b',
      'not (?:our|a|an) (?:{who}|member|yahoo)|not (?:have|an?) … account|no account',
      'no (?:one|body) … (?:here|by that name)|(?:mailbox|one|user|person) … by that name|this user',
      'not a (?:valid|known|local|registered|member)|not a \\w+ user',
      '(?:no|not) (?:listed )?(?:in|on|of) … (?:directory|address book|list|table|local|server)|not unique',
      'ambiguous|(?:check|verify) (?:if|that|whether) … address|call ?out verif|verification failed',
      'recipient … verif|not deliverable|undeliverable address|unverified address|recip(?:ient)? not ?found',
      'nosuchuser|no ?such ?user|user ?unknown|rcp p\\d|all recipient|no (?:valid )?recipients|invalid users?',
      'unable to verify user',
      '(?:user|recipient|address|account|mailbox|employee|person|he|she|they) … (?:moved|left|no longer|changed|removed|deleted|migrated|gone|ceased)',
      'new address|please (?:update|use) … address|has moved|no longer (?:with|work|at|employed|use)',
      'not handled by this system|has left',
      '(?:local part|address|alias|account|user) … (?:not (?:be )?(?:found|resolved)|not a\\b|reserved)',
      'single label',
      'relay\\w*\\b … (?:denied|not (?:permitted|allowed)|prohibited|refused|reject\\w*|forbidden|disallowed|access)',
      '(?:unable|not|refuse|can not|unauthori[sz]ed|attempt) … relay|rcpthosts',
      'not (?:a )?(?:gateway|local host|local domain)|no relaying|not local|please try forwarding',
      'not configured to relay|(?:nieznany|brak) (?:uzytkownik|adres|odbiorc)',
      ...LANGUAGES.mailboxNotFound,
    ],
  },
  {
    reason: 'rate_limited',
    phrases: ['exceed\\w* … limits?\\b|(?:thread|connection|message) limit'],
  },
  {
    // Nothing plainer was said, and it speaks of the sending side.
    reason: 'reputation_block',
    phrases: [
      'your (?:ip|server|host|network|mta|provider|isp)\\b|your domain (?:{is})|(?:this|source|client|from) ip\\b',
      'sending (?:domain|server|host|ip)',
    ],
  },
  {
    reason: 'policy_block',
    phrases: [
      'organi[sz]ational settings|polic(?:y|ies)\\b|administrative\\w*|administrator|prohibited|not permitted',
      'not allowed|envelope (?:blocked|rejected)|access denied|denied\\b|authori[sz]ed|permission|permit\\b',
      'forbidden|restrict\\w*|local rules?|rules?\\b',
      ...LANGUAGES.policy,
    ],
  },
  {
    reason: 'mailbox_not_found',
    phrases: [
      '(?:not|no longer) (?:exists?|recogni[sz]ed|found)\\b',
      'recipients? (?:address(?:es)? )?(?:{is})? ?(?:reject|refus|not accept)',
      'address (?:{is})? ?(?:reject|refus|ignored)',
    ],
  },
  {
    reason: 'rate_limited',
    phrases: [
      '(?:try|retry|come back|resend)\\w* … (?:later|again|reconnect)|temporar(?:y|ily)\\b|busy|overload\\w*',
      'deferred|put off|later',
      'service (?:is )?(?:currently |temporarily )?(?:not available|unavailable|not active)',
      'not accepting connections|(?:message|queue|envelope|journal\\w*) … expir|delivery time expired|giving up',
      'delivery failed \\d{1,3} attempts|(?:not|could not be|unable to) deliver\\w* … (?:for|within|after) ',
      'multiple retries|out of (?:memory|resources)|system resources|resources? … unavailable|connection expired',
      'timeout|veuillez essayer|plus tard|internal (?:system |server )?(?:error|resources)',
      '(?:system|local|server) (?:config\\w*|configuration|error|problem|trouble)|queue file|lock failure',
      'i/o error|input output|operating system|mailer error|replicat|protocol violation|syntax error|bad sequence',
      'improper sequence|unrecognized command|unimplemented|not implemented',
      ...LANGUAGES.busy,
    ],
  },
];
