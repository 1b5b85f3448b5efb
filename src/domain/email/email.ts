/**
 * The glossary of this project, used in code, columns, URLs and documents.
 *
 * email         one message to up to 150 recipients, as a customer posted it
 * organization  the owner of emails; everything a caller may see belongs to exactly one
 * domain        the part of `from` behind the @; must be registered and verified by the organization
 * due           the time an email may be sent: `scheduled_at`, or immediately
 * version       `schedule_version`: increases with each reschedule, so a timer can detect that it is out of date
 * outbox        rows that the relay dispatches to Temporal; written with the change that they describe
 * claim         a worker's exclusive right to send an email; from then on it cannot be canceled
 * call          one request to a provider, made for one email or for a group; every attempt names its call
 * attempt       one email's part in a call, with its outcome
 * event         an entry of an email's timeline
 */

/** The statuses of an email, with what each does not promise. */
export const EMAIL_STATUSES = [
  /** Accepted and pending: for a worker or for the next attempt. A provider may already have it (see attempts). */
  'queued',
  /** Pending until `scheduled_at`. The only status in which an email can be rescheduled or canceled. */
  'scheduled',
  /** A provider accepted it. This states nothing about the recipient's server. */
  'sent',
  /** The recipient's server deferred it; the provider keeps trying. */
  'delivery_delayed',
  /** The recipient's server accepted it. Inbox and junk folder are not distinguished. */
  'delivered',
  /** Its tracking image was loaded, by a person or by a machine. */
  'opened',
  /** A link in it was followed, by a person or by a scanner. */
  'clicked',
  /** Refused permanently. `bounce_reason` states why, `error` contains the server's response. */
  'bounced',
  /** A recipient reported it as spam. */
  'complained',
  /** Never handed over: every `to` address was on the suppression list when it was due. */
  'suppressed',
  /** Canceled before it was claimed; never handed over. */
  'canceled',
  /** The provider refused this message permanently. */
  'rejected',
  /** Given up: every attempt failed or no provider can deliver it. `error` states why. */
  'failed',
] as const;
export type EmailStatus = (typeof EMAIL_STATUSES)[number];

/** Reasons for which a recipient's server refuses email, by interface.md. */
export const BOUNCE_REASONS = [
  'mailbox_not_found',
  'mailbox_inactive',
  'dns_failure',
  'policy_block',
  'provider_suppressed',
  'mailbox_full',
  'spam_block',
  'reputation_block',
  'authentication_failure',
  'rate_limited',
  'message_too_large',
  'content_rejected',
  'unknown',
] as const;
export type BounceReason = (typeof BOUNCE_REASONS)[number];

/** A tag: the customer's own label, never shown to recipients. */
export interface Tag {
  name: string;
  value: string;
}

/** The names of email providers in settings and columns. */
export const EMAIL_PROVIDERS = ['postmark', 'smtp'] as const;
export type EmailProviderName = (typeof EMAIL_PROVIDERS)[number];

/** A valid request to send one email: interface.md's Send Email body after validation, defaults filled in. */
export interface EmailRequest {
  from: string;
  to: string[];
  cc: string[] | null;
  bcc: string[] | null;
  reply_to: string[] | null;
  subject: string;
  html: string | null;
  text: string | null;
  marketing: boolean;
  tags: Tag[];
  headers: Record<string, string>;
  /** UTC with milliseconds, or null for immediately. */
  scheduled_at: string | null;
}
