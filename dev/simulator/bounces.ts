import type { BounceReason } from '../../src/domain/email/email.ts';

/** A refusal by a recipient's server for one reason, and Postmark's classification of it. */
export interface Bounce {
  readonly reason: BounceReason;
  /** The server's reply to RCPT TO, with its code. */
  readonly reply: string;
  /** Postmark's type, its code and its name. */
  readonly type: string;
  readonly typeCode: number;
  readonly name: string;
  readonly description: string;
  /** True if Postmark refuses the address afterwards. */
  readonly inactive: boolean;
}

type Type = Pick<Bounce, 'type' | 'typeCode' | 'name' | 'description'>;

/** https://postmarkapp.com/developer/api/bounce-api#bounce-types */
const HARD: Type = {
  type: 'HardBounce',
  typeCode: 1,
  name: 'Hard bounce',
  description: 'The server was unable to deliver the message, for example because there is no such mailbox.',
};
const SOFT: Type = {
  type: 'SoftBounce',
  typeCode: 4096,
  name: 'Soft bounce',
  description: 'The message could not be delivered for now, for example because the mailbox is full.',
};
const BLOCKED: Type = {
  type: 'Blocked',
  typeCode: 100006,
  name: 'ISP block',
  description: 'The provider of the recipient blocked the message.',
};

/** One example per reason, in the words of mail servers. */
const BOUNCES: Readonly<Record<BounceReason, Omit<Bounce, 'reason'>>> = {
  mailbox_not_found: {
    ...HARD,
    reply: '550 5.1.1 Recipient address rejected: User unknown in virtual mailbox table',
    inactive: true,
  },
  mailbox_inactive: {
    ...HARD,
    reply: '550 5.2.1 The email account that you tried to reach is disabled.',
    inactive: true,
  },
  dns_failure: {
    type: 'DnsError',
    typeCode: 256,
    name: 'DNS error',
    description: "The name of the recipient's domain could not be resolved.",
    reply: '550 5.1.2 Host or domain name not found. Name service error: Host not found',
    inactive: true,
  },
  policy_block: {
    ...BLOCKED,
    reply: '550 5.7.1 Rejected by a rule of the recipient: only internal senders may write to this address',
    inactive: true,
  },
  provider_suppressed: {
    type: 'ManuallyDeactivated',
    typeCode: 100002,
    name: 'Manually deactivated',
    description: 'The address was deactivated by hand.',
    reply: '550 5.7.1 This address is on our suppression list',
    inactive: true,
  },
  mailbox_full: {
    ...SOFT,
    reply: '552 5.2.2 The email account that you tried to reach is over quota: mailbox full',
    inactive: false,
  },
  spam_block: {
    type: 'SpamNotification',
    typeCode: 512,
    name: 'Spam notification',
    description: 'The message was classified as spam or blocked by a spam filter.',
    reply: '554 5.7.1 Message rejected: it was identified as spam',
    inactive: false,
  },
  reputation_block: {
    ...BLOCKED,
    reply: '554 5.7.1 Service unavailable; Client host [203.0.113.7] blocked using zen.spamhaus.org',
    inactive: false,
  },
  authentication_failure: {
    type: 'DMARCPolicy',
    typeCode: 100009,
    name: 'DMARC policy',
    description: 'The message was refused by the DMARC policy of its sender.',
    reply: '550 5.7.26 Unauthenticated email is not accepted due to the DMARC policy of the sender domain',
    inactive: false,
  },
  rate_limited: {
    ...SOFT,
    reply: '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages',
    inactive: false,
  },
  message_too_large: {
    ...SOFT,
    reply: '552 5.3.4 Message size exceeds fixed maximum message size',
    inactive: false,
  },
  content_rejected: {
    type: 'VirusNotification',
    typeCode: 8192,
    name: 'Virus notification',
    description: 'The message holds something that may be a virus.',
    reply: '552 5.7.0 Message rejected: the attachment contains a virus',
    inactive: false,
  },
  unknown: {
    type: 'Unknown',
    typeCode: 2048,
    name: 'Unknown',
    description: 'The message could not be delivered, for a reason that nobody could tell.',
    reply: '554 Transaction failed',
    inactive: true,
  },
};

/** Returns the bounce of an address with this detail, that of a missing mailbox without one; undefined for an unknown reason. */
export function bounceOf(detail: string): Bounce | undefined {
  const reason = detail === '' ? 'mailbox_not_found' : detail;
  return isReason(reason) ? { reason, ...BOUNCES[reason] } : undefined;
}

function isReason(text: string): text is BounceReason {
  return Object.hasOwn(BOUNCES, text);
}

/**
 * Why the simulator refuses an address with an unknown bounce reason. It lists whole addresses: the bare names of the reasons would
 * be read as the reason of this refusal.
 */
export function unknownReason(address: string): string {
  const known = Object.keys(BOUNCES).map((reason) => `bounced+${reason}@example.com`);
  return `${address} asks for an unknown bounce reason; use one of ${known.join(', ')}.`;
}
