import type { BounceReason } from './email.ts';

export const SUPPRESSION_ORIGINS = [
  /** The recipient's server refused it for a permanent reason. */
  'bounce',
  /** The recipient reported an email as spam. */
  'complaint',
  /** The recipient unsubscribed from marketing email; other mail is still sent. */
  'unsubscribe',
  /** A member of the organization added it. */
  'manual',
  /** The address is on the provider's own list. */
  'provider',
] as const;
export type SuppressionOrigin = (typeof SUPPRESSION_ORIGINS)[number];

/** Returns true if an entry of the suppression list concerns an email: an unsubscription concerns marketing email only. */
export function isSuppressedBy({ origin }: { origin: SuppressionOrigin }, email: { marketing: boolean }): boolean {
  return origin !== 'unsubscribe' || email.marketing;
}

/** The error of an email or copy whose recipient was suppressed after a call that may have delivered it. */
export const SUPPRESSED_AFTER_CALL_ERROR =
  'It may have been delivered: the provider did not confirm it and cannot be asked. The suppression list forbids another attempt.';

/** True for bounce reasons that suppress the recipient, by the table of interface.md. */
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
