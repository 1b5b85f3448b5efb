import type { BounceReason } from '../email/email.ts';

/** The meaning of a bounce reason and what the sender can do about it, in plain words; `docs/statuses.md` has the same table. */
interface ReasonInWords {
  readonly meaning: string;
  readonly remedy: string;
}

export const BOUNCE_REASONS_IN_WORDS: Readonly<Record<BounceReason, ReasonInWords>> = {
  mailbox_not_found: {
    meaning: 'no account with that address',
    remedy: 'correct the address, or remove it from your data',
  },
  mailbox_inactive: {
    meaning: 'the account is disabled, suspended or unused',
    remedy: 'ask the recipient for another address',
  },
  dns_failure: {
    meaning: 'the domain has no mail server that can be reached',
    remedy: 'check the domain for a typing error; ask the recipient whether it still exists',
  },
  policy_block: {
    meaning: "a rule on the recipient's side refused the message",
    remedy: "ask the recipient's administrator to allow your domain, then remove the suppression",
  },
  provider_suppressed: {
    meaning: "the provider's own suppression list has the address",
    remedy:
      'once you know that the address works, remove the suppression here: that also clears it at the provider, except after a complaint',
  },
  mailbox_full: {
    meaning: 'over quota',
    remedy: 'resend it in a few days',
  },
  spam_block: {
    meaning: 'a spam filter rejected the content',
    remedy: 'check the content and its links, send only to recipients who asked for it, then resend',
  },
  reputation_block: {
    meaning: 'the sending server or domain is blocked',
    remedy: 'look up the block list that the server names and ask for removal; slow down and clean your lists',
  },
  authentication_failure: {
    meaning: 'SPF, DKIM or DMARC failed',
    remedy: 'check the records of the sender domain under Domains, then resend',
  },
  rate_limited: {
    meaning: 'the server is throttling',
    remedy: 'resend it later, and send to this server more slowly',
  },
  message_too_large: {
    meaning: "over the server's size limit",
    remedy: 'send links in place of attachments',
  },
  content_rejected: {
    meaning: 'the text or a file was refused, often by a virus scanner',
    remedy: 'check the attachments and links, then resend',
  },
  unknown: {
    meaning: 'no recognizable reason; treated as a bad address',
    remedy: "read the server's response; if the address is right, remove the suppression and resend",
  },
};
