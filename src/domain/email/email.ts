/**
 * The words of this project, used alike in code, columns, URLs and documents.
 *
 * email         one message to up to 150 recipients, as a customer posted it
 * organization  whose email it is; everything a caller may see belongs to exactly one
 * domain        the part of `from` behind the @; must be registered and verified by the organization
 * due           the instant an email may leave: `scheduled_at`, or at once
 * version       `schedule_version`: grows with each reschedule, so a timer can tell that it is out of date
 * outbox        rows that tell the relay what to ask of Temporal; written with what they speak of
 * claim         what a worker does before it sends: nobody else may, and cancel comes too late
 * call          one request to a provider, made for one email or for a group; every attempt names its call
 * attempt       one email's part in a call, with its outcome
 * event         a line of an email's timeline
 */

/** Where an email stands. Each state says what it does not promise. */
export const EMAIL_STATUSES = [
  /** Accepted and waiting for a worker, or between two attempts. A provider may already have it (see attempts). */
  'queued',
  /** Waiting for `scheduled_at`. Still ours to move or cancel: the only state in which that holds. */
  'scheduled',
  /** A provider took it. Says nothing about the recipient's server. */
  'sent',
  /** The recipient's server put it off; the provider keeps trying. */
  'delivery_delayed',
  /** The recipient's server took it: into the inbox or the junk folder, that is not told. */
  'delivered',
  /** Its tracking image was loaded; by a person or by a machine in front of one. */
  'opened',
  /** A link in it was followed; by a person or by a scanner. */
  'clicked',
  /** Refused for good. `bounce_reason` says why, `error` holds the server's words. */
  'bounced',
  /** A recipient called it spam. */
  'complained',
  /** Never handed over: every `to` address was on the suppression list when it was due. */
  'suppressed',
  /** Called back before it was claimed; never handed over. */
  'canceled',
  /** The provider refused this very message for good. */
  'rejected',
  /** Given up: every attempt failed or no provider can carry it. `error` says why. */
  'failed',
] as const;
export type EmailStatus = (typeof EMAIL_STATUSES)[number];

/** Why a recipient's server refused, as interface.md lists them. */
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

/** The names of email providers, as settings and columns write them. */
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
  /** UTC with milliseconds, or null for at once. */
  scheduled_at: string | null;
}
