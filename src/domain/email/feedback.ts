import type { EmailChange } from './states.ts';
import type { BounceReason } from './email.ts';
import type { SuppressionOrigin } from './suppression.ts';

/** Changes that providers report about a recipient after the hand-over. */
export type FeedbackChange = Extract<
  EmailChange,
  | 'delivery_delayed'
  | 'delivered'
  | 'opened'
  | 'opened_by_machine'
  | 'clicked'
  | 'clicked_by_machine'
  | 'bounced'
  | 'complained'
  | 'unsubscribed'
>;

/** A provider's normalized report about one recipient of an email. */
export interface Feedback {
  readonly emailId: string;
  readonly change: FeedbackChange;
  /** The address without a name, as the provider spells it. */
  readonly recipient: string;
  /** Identifies this report among those of the email; repetitions have the same key. */
  readonly dedupeKey: string;
  /** For a bounce: a sentence that includes the response of the recipient's server. */
  readonly error?: string;
  readonly bounceReason?: BounceReason;
  /** For a click: the URL of the link. */
  readonly link?: string;
  /** The callback's evidence about the message; undefined when we queried the provider for a known message. */
  readonly evidence?: ReportEvidence;
}

/** A report about an email's recipient on a provider's own suppression list. */
export interface ProviderSuppression {
  readonly emailId: string;
  /** The bare address as the provider wrote it. */
  readonly recipient: string;
  /** The reason for its entry; null if it was removed from the list. */
  readonly origin: SuppressionOrigin | null;
  /** True for the list of marketing email alone. Each of Postmark's streams has a list of its own; one stream may send all email. */
  readonly isMarketing: boolean;
  readonly evidence: ReportEvidence;
}

/**
 * The message that a callback is about. It is accepted only for a recipient of the email, and only if the email id has our
 * signature or the provider assigned the message id to this email.
 */
export interface ReportEvidence {
  /** The provider's id of the message; may be empty. */
  readonly messageId: string;
  readonly isSigned: boolean;
}
