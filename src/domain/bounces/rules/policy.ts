import type { Phrases } from './expression.ts';
import { LANGUAGES } from './languages.ts';

/** Rules of the recipient and of providers. */
export const POLICY = {
  /** Suppressed at a provider: Postmark 406, SES, SparkPost, SendGrid, Mailgun, Mailjet. */
  suppressed: [
    'suppress(?:ed|ions?|ing)\\b',
    'marked as inactive',
    '406: inactive',
    'inactive recipients? (?:are|have)',
    '(?:previously|repeatedly|recently) (?:hard )?bounced',
    '(?:history of|too many|prior|previous|existing) (?:hard )?bounc',
    'bounced address',
    'not delivering to',
    '(?:marked|reported) your messages? as spam',
    'unsubscribed (?:address|recipient)',
    '(?:recipient|address|user) … unsubscribed',
    '(?:unsubscribe|bounce|opt ?out|not (?:mail|email|contact|send)) list',
  ],
  /** The recipient's own list of senders, in the terms of NetEase, Exchange Online and Mimecast. */
  ownLists: [
    '(?:user|customer|personal|private|recipient|tenant|organi[sz]ation)s? (?:address |allow )?(?:{list})',
    'by (?:your|the|an?|our) organi[sz]ation\\b',
    'user (?:is )?in black ?list',
    'blocked senders? (?:list|policy)',
    'header based (?:manually )?blocked',
    'envelope (?:blocked|rejected)',
  ],
  /** Only members or internal senders are accepted. */
  closed: [
    'auth(?:entication)? required(?:;| to (?:deliver|send))',
    '@.\\.7\\.1(?:2|3\\d?) [^.]{0,80}sender (?:was )?not authenticated',
    '(?:sender|authenticated) … (?:for|to) (?:group|mailbox|public folder|this (?:group|recipient|address|list))',
    'not allowed … anonymous',
    'resolver\\.?rst',
    '(?:not|only) … (?:members?|subscribers?|moderators?|allowed senders?) … (?:post|send|list|group)',
    'member of this (?:mailing )?list',
    'permission to post',
    'mailing list … (?:closed|restrict|moderat|reject|not)',
    'allowed senders list',
    'not authori[sz]ed to send (?:e?mail |messages )?to',
    'delivery not authori[sz]ed',
    'not (?:pre )?approved',
    'not accept(?:ing)? (?:e?mail|messages) from',
    'only accept(?:s|ing)? (?:e?mail|messages)',
    'list of (?:allowed |approved |permitted )?senders',
    'members only|non members?\\b|closed (?:mailing )?list',
    '(?:recipient|user|addressee) (?:preferences|restrict\\w*|refus\\w*|rejects|blocks|not want|not accept)',
    '(?:rejected|refused|blocked|denied) by (?:the |this |its )?(?:recipient|user|addressee|owner|mailbox owner)(?! (?:domain|server|mail|callout))',
    '(?:recipient|user) (?:has |have )?(?:rejected|refused|blocked) (?:your|this|the)',
    'banned recipient',
    'mailbox … restricted',
    'bad ?rcptto',
    'access denied, rejected by',
    '(?:rejected|refused|blocked) by (?:the )?(?:destination|recipients|receiver)\\b',
    'not (?:allowed|permitted|authori[sz]ed) to (?:send|mail|post|write|contact|email)',
    'block(?:ed)? send',
  ],
  /** Words about a rule. */
  rules: [
    'organi[sz]ational settings',
    'polic(?:y|ies)\\b',
    'envelope (?:blocked|rejected)',
    'local rules?',
    'rules?\\b',
    'prohibition',
    '(?:bounced|rejected|refused|blocked) by (?:the |an |our )?administrator',
    ...LANGUAGES.policy,
  ],
} as const satisfies Phrases;
