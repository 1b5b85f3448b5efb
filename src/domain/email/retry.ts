import type { BounceReason } from './email.ts';

/** The outcome of one email in one provider call, classified by its adapter. `detail` is a sentence for customers. */
export type SendOutcome =
  /**
   * The provider accepted it for all recipients, or for all except the refused ones. `acceptedAt` is the provider's time in
   * milliseconds since 1970, if it states one.
   */
  | ({ readonly kind: 'sent'; readonly messageId: string; readonly acceptedAt?: number } & NamedRecipients)
  /** No recipient can receive it except the deferred ones; `refused` lists those with a stated reason. */
  | ({ readonly kind: 'bounced'; readonly reason: BounceReason; readonly detail: string } & NamedRecipients)
  /** The provider refused this message permanently. */
  | ({ readonly kind: 'rejected'; readonly detail: string } & NamedRecipients)
  /**
   * Refused for a temporary reason. `afterMs` is the delay that the provider stated; `alone` is set if it was
   * refused as part of a group and must be retried without the others. `isOverLimit` is set if the provider takes fewer recipients at
   * a time: the next call need not wait, since it names fewer.
   */
  | ({
      readonly kind: 'busy';
      readonly detail: string;
      readonly afterMs?: number;
      readonly alone?: true;
      readonly isOverLimit?: true;
    } & NamedRecipients)
  /** Not handed to the provider, for a reason of ours; not an attempt. `afterMs` is the delay until it is tried. */
  | { readonly kind: 'postponed'; readonly detail: string; readonly afterMs: number }
  /**
   * Refused because of our account with the provider, until an operator fixes the account. `scope` is set when the refusal
   * concerns only this sender, or only the provider's stream of the email: the rest of the account continues to send.
   * `organization` is for an answer that may concern the whole account or one message: it counts for the email's organization
   * until the provider refuses a second one.
   */
  | { readonly kind: 'account'; readonly detail: string; readonly scope?: 'sender' | 'stream' | 'organization' }
  /** Ambiguous: no response arrived, or one that does not decide it. The provider may have accepted the email. */
  | ({ readonly kind: 'unknown'; readonly detail: string } & NamedRecipients);

/** The recipients that the provider answered about individually. The outcome concerns the others. */
export interface NamedRecipients {
  readonly refused?: readonly RefusedRecipient[];
  readonly deferred?: readonly DeferredRecipient[];
}

/** One of several recipients that the provider refused permanently, regardless of the others. */
export interface RefusedRecipient {
  /** The bare address as passed to the provider. */
  readonly recipient: string;
  readonly reason: BounceReason;
  /** A sentence for customers. */
  readonly detail: string;
}

/** One of several recipients that the provider refused for now. It is sent to later, without the others. */
export interface DeferredRecipient extends Pick<RefusedRecipient, 'recipient' | 'detail'> {
  /** True if the provider only takes fewer recipients at a time: the next transaction need not wait. */
  readonly isOverLimit: boolean;
}

/** The number and intervals of attempts; intervals in milliseconds, doubling from the first to the longest. */
export interface RetryPolicy {
  readonly maximumAttempts: number;
  readonly initialInterval: number;
  readonly maximumInterval: number;
}
