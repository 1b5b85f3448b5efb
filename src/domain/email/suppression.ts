import type { BounceReason } from './email.ts';

/** How an address came onto an organization's suppression list. */
export const SUPPRESSION_ORIGINS = [
  /** The recipient's server refused it for a reason that will not pass. */
  'bounce',
  /** The recipient called an email spam. */
  'complaint',
  /** The recipient wants no more marketing email; all other mail still goes there. */
  'unsubscribe',
  /** Somebody of the organization put it there. */
  'manual',
  /** The provider has it on its own list. */
  'provider',
] as const;
export type SuppressionOrigin = (typeof SUPPRESSION_ORIGINS)[number];

/** Whether a bounce for this reason puts the recipient on the list, as the contract's table of bounce reasons says. */
export const SUPPRESSING: Readonly<Record<BounceReason, boolean>> = {
  mailbox_not_found: true,
  mailbox_inactive: true,
  dns_failure: true,
  policy_block: true,
  provider_suppressed: true,
  mailbox_full: false,
  spam_block: false,
  reputation_block: false,
  authentication_failure: false,
  rate_limited: false,
  message_too_large: false,
  content_rejected: false,
  unknown: true,
};
