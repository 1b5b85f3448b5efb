/** The statuses of an SMS, with what each does not promise. */
export const SMS_STATUSES = [
  /** Accepted and pending: for a worker or for the next attempt. A provider may already have it. */
  'queued',
  /** Accepted, and due later. */
  'scheduled',
  /** A provider accepted it. This states nothing about the recipient's phone. */
  'sent',
  /** It arrived on the recipient's phone. */
  'delivered',
  /** The carrier did not deliver it. `error` states why, `error_code` contains the provider's code. */
  'undelivered',
  /** Refused permanently, or given up. `error` and `error_code` state why. */
  'failed',
  /** Canceled before it was due. */
  'canceled',
  /** Not sent, because the recipient has opted out of messages from this sender. */
  'suppressed',
] as const;
export type SmsStatus = (typeof SMS_STATUSES)[number];
