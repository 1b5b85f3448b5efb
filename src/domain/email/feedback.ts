import type { EmailChange } from './states.ts';
import type { BounceReason } from './email.ts';

/** What providers report about a recipient after the hand-over. */
export type FeedbackChange = Extract<
  EmailChange,
  'delivery_delayed' | 'delivered' | 'opened' | 'clicked' | 'bounced' | 'complained' | 'unsubscribed'
>;

/** One report about one recipient of an email, in our words. */
export interface Feedback {
  readonly emailId: string;
  readonly change: FeedbackChange;
  /** The bare address as the provider wrote it. */
  readonly recipient: string;
  /** The same for every repetition of this report, and for nothing else about this email. */
  readonly dedupeKey: string;
  /** Of a bounce: a sentence that includes the words of the recipient's server. */
  readonly error?: string;
  readonly bounceReason?: BounceReason;
  /** Of a click: where the link leads. */
  readonly link?: string;
  /** What a callback states about the message; undefined when we asked the provider about a message that we know. */
  readonly claim?: ReportClaim;
}

/**
 * How a callback names its message. It counts only for a recipient of the email, and only if the email id is signed by us
 * or the message id is one that the provider gave us for this email.
 */
export interface ReportClaim {
  /** The provider's id of the message; may be empty. */
  readonly messageId: string;
  readonly isSigned: boolean;
}
