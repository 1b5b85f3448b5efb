import type { Phrases } from './expression.ts';

/**
 * What a relay says about its customer, that is about us: the sender's identity, our account, its credits and quotas, our right
 * to send. Phrases combine a party with a state, as in the other rules; see `account.ts` beside this folder for their use.
 */
export const ACCOUNT = {
  /** Our mail is not relayed. */
  relaying: [
    'relay\\w*\\b … (?:denied|disabled|not (?:permitted|allowed|authori[sz]ed|enabled)|prohibited|refused|reject\\w*|forbidden|disallowed)',
    '(?:unable|not (?:allowed|permitted|authori[sz]ed|able|configured)|refuse|can not)(?: \\w+){0,3} (?:to )?relay(?:ing|s)?\\b|no relaying|not relay\\w*|relays? only|only relays?\\b',
    'forward\\w* … (?:outside|external|other|remote|foreign) … not (?:allowed|permitted)',
  ],
  /** One sender is refused: its address or domain is not verified, or is not ours. */
  sender: [
    '@53[058] ',
    '(?:{identity}) (?:@host )?(?:\\w+ ){0,3}(?:{unconfirmed}|not (?:allowed|permitted|enabled|recogni[sz]ed|accepted))',
    '(?:{identity})(?: \\w+){0,3} … (?:{unconfirmed})',
    '(?:unverified|unconfirmed|unauthenticated|unregistered|unapproved|unauthori[sz]ed) (?:outbound )?(?:senders?|from|sending|domain|identity|mail ?from)\\b',
    '(?:verify|confirm|validate|authenticate|register|prove) (?:the |your |this |that |a )?(?:\\w+ )?(?:senders?|sending|from|domains?|identity|ownership)\\b',
    'ownership … (?:prove\\w*|verif\\w*|confirm\\w*)|(?:verif|confirm|validat)\\w*\\b … (?:in|for|with) your (?:account|workspace|tenant|dashboard)',
    '(?:verified|validated|confirmed|registered) (?:senders?|(?:sender |sending )?domains?|identit\\w*)\\b|identit(?:y|ies) … failed the check',
    '(?:rights?|permissions?|privileges?|allowed|permitted) to (?:use|submit|send) (?:\\w+ ){0,2}(?:sender|from|domain|identity)\\b',
    'sender (?:address )?(?:verify failed|verification failed|rejected|reject\\b)|bad outbound sender|sender domain … can ?not be used',
    'send ?as ?denied|(?:permissions?|allowed|permitted|authori[sz]ed|entitled|right|able) to (?:send|submit|use|relay) (?:(?:any )?(?:e?mail|messages?) )?(?:as|from|on behalf|in the name|under)\\b',
    'not (?:owned by|belong to|associated with|assigned to|registered (?:with|under|for))\\b',
    '(?:authentication|auth|log ?in) (?:is )?(?:required|needed)(?!;)|must (?:first )?(?:authenticate|log ?in)|not (?:logged in(?! for| since)|authenticated)\\b',
    'client host rejected|helo command rejected',
  ],
  /** Our account, addressed as ours. */
  ours: [
    'your (?:\\w+ ){0,3}(?:accounts?(?! manager| provider| rep)|plan|subscription|package|profile|tenant(?! allow)|workspace|trial|licen[sc]e|credits?|balance|allowance|allotment|quota|limits?|cap|api key|billing|invoice|payment|credentials|sandbox)\\b(?! by the recipient)',
    '(?:votre|vos|ihre?|ihrem|dein|su|tu|seu|sua|vostro|tuo|uw|twoj\\w*|ваш\\S{0,3}) (?:\\w+ )?(?:compte|abonnement|konto|vertrag|guthaben|cuenta|saldo|conta|account|rekening|аккаунт|учетн\\S*)',
    'sand ?box\\b|ses:',
  ],
  /** The whole account is refused, or has nothing left. */
  account: [
    '(?:{submission}) (?:{is} )?not (?:yet )?(?:possible|available|allowed|permitted)\\b|(?:configured|set up|ready) (?:for|to) (?:send\\w*|submission)',
    '(?:{submission})(?: \\w+){0,3} … (?:{halted})|(?:{halted}) … (?:{submission})\\b',
    '(?:sending|submission|smtp|relay|mailing) (?:privileges?|permissions?|rights?)\\b',
    '(?:{credit})\\b … (?:{spent})|(?:{spent}|maximum|no|more) (?:\\w+ ){0,2}(?:{credit})\\b',
    '(?:{sending}|{period})(?: \\w+){0,4} (?:{allowance})\\b',
    '(?:{spent}) … (?:{sending}) (?:\\w+ ){0,2}(?:{allowance})\\b|(?:{allowance}) … (?:{sending}) … (?:{spent})',
    '(?:{allowance})\\b … (?:for|of|on|to) (?:\\w+ )?(?:{sending})',
    '(?:you|client|customer) (?:have |has )?(?:already )?(?:{spent}) (?:\\w+ ){0,5}(?:{allowance}|{credit}|e?mails?|messages)\\b',
    '(?:{spent}) … (?:e?mails?|messages|recipients) (?:per|each|an?|every) (?:hour|day|month)\\b|unusual (?:sending|outgoing) activity',
    '(?:account|identity|sender|domain|business|company) (?:verification|validation|activation|approval|confirmation|review)\\b',
    'number of (?:\\w+ )?(?:outgoing|outbound|sent|e?mails|messages) … (?:reached|exceeded|used)',
    '(?:only |can |may )(?:send )?\\d{1,9} (?:e?mails?|messages?) (?:per|each|a|every) (?:hour|day|month)',
    '(?:test|demo|trial) (?:mode|purposes|account|period|domain)\\b|trial … (?:ended|expired|over)|probation|free (?:plan|account|tier)s?\\b|upgrade (?:your|the|to)\\b',
    '(?:allowed|authori[sz]ed|approved|permitted|white ?listed) ips?\\b|ip (?:allow|white|access) ?list|(?:\\bips?|connecting)(?: address)? … not (?:\\w+ ){0,2}(?:white ?listed|(?:allowed|permitted|authori[sz]ed) to (?:send(?! (?:e?mail |messages )?(?:for|to))|use|relay))',
    '(?:not|un)(?: ?authori[sz]ed| allowed| permitted| entitled) to (?:perform|submit|use this|relay)',
    '(?:api (?:key|user)|credentials?|token|log ?in|access key) … (?:not|lacks?|invalid|expired|revoked|disabled|missing)',
    'no (?:active )?(?:plan|subscription|package|licen[sc]e) … (?:user|account|customer|found)|(?:control panel|dashboard)\\b',
    '(?:quota|limite?|limit\\w*|kontingent)\\b … (?:envoi|envio|versand|invio|sending)|(?:sende|versand|tages)(?:limit|kontingent|quota)',
  ],
  /**
   * The same states without a party, or with a party that may also be the recipient. At the end of the data they concern us
   * unless the words name a mailbox: a relay has accepted the recipients by then.
   */
  unnamed: [
    '(?:quota|kontingent|credits?|allowance|volume)\\b',
    '(?:limits?|max(?:imum)?|threshold)\\b … (?:{spent}|of)|(?:{spent}) … (?:limits?|maximum|threshold)\\b|too many (?:e?mails?|messages?)\\b',
    '(?:accounts?|customers?|clients?|service|subscriptions?|plan|profile|licen[sc]e|log ?in|domain|sender|tenant|compte|konto|cuenta|conta) … (?:{halted})',
    '(?:{unconfirmed})',
    '(?<!(?:message|e?mail|mail|content|attachment|files?|type|link) (?:(?:is|was|are) )?)(?:not (?:allowed|permitted|authori[sz]ed|entitled|eligible)|unauthori[sz]ed|access denied|permissions?|privileges?|scopes?)\\b',
    'requires? (?:prior )?(?:approval|verification|activation|authori[sz]ation)|(?:verification|validation|activation) (?:{is} )?(?:incomplete|pending|required|missing)|contract|prepaid',
    'n(?:on|icht|ao|o) (?:verifi|bestatigt|freigegeben|autori[sz])',
    'billing|past due|overdue|unpaid|payment|invoice|(?:un|in)?activat\\w*|compliance (?:team|review)|under review|awaiting review',
    '(?:suspended|suspension|deactivated|revoked)\\b',
    '(?<!if )you (?:are|were|have|had|may|must|need|can|not|do|use|should)\\b|your (?!messages?|e?mails?|request)|(?:senders?|sender (?:address|domain)|from (?:address|header|domain|field)|return path|identit(?:y|ies)|api|api ?key|this key|token|smtp|relays?|workspace|tenant|plan|hosting)\\b',
  ],
  /** The recipient, a group or a list is named as the cause. */
  ofRecipient: [
    '(?:recipient|addressee|receiver|rcpt|mailbox|inbox)\\b(?! (?:limits?|quota|count|rate)\\b|s? out of)',
    '(?:user|person|address|account) (?:that )?you (?:are|were|tried|have)',
    '(?:this|the|mailing|closed) (?:group|list)\\b|members? only|subscribers? only',
    'resolver\\.? ?rst|delivery restriction|no such|user unknown|unknown user|unrouteable',
  ],
  /** Words of `unnamed` that are about a mailbox, its storage or its rules, or about the network and the session, beside these. */
  ofMailbox: [
    '(?:users?|recipients?|rcpt|mailbox(?:es)?|mbox|mail ?dir|inbox|addressees?|alias(?:es)?|local part|person|name|storage|disk|disc|folder)\\b',
    '(?:e?mails?|messages?) (?:to|for) ?(?!1?\\d+ )|deliver(?:ing|y)? (?:the )?(?:message )?to\\b|receiv\\w*|account … (?:quota|full)\\b',
  ],
  ofNetwork: [
    '\\bips?\\b|@ip|(?:helo|ehlo|rdns|ptr|hosts?|host ?names?|networks?|connect\\w*|sessions?|command|queue)\\b|too old',
  ],
  /** A filter, a list or an authentication record is named as the cause: a decision about the message, or about our reputation. */
  ofFilter: [
    'polic(?:y|ies)\\b|\\b(?:dmarc|spf|dkim|dnsbl|rbl)\\b|@spf|@list|(?:block|black|deny) ?list|reputation|blocked using|score\\b|(?:blank|empty|missing|malformed) (?:from|sender|message)',
  ],
} as const satisfies Phrases;
