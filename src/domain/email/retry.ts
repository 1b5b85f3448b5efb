import type { BounceReason } from './email.ts';

/** What became of one email in one provider call, as its adapter classified it. `detail` is a sentence for customers. */
export type SendOutcome =
  /**
   * The provider took it: for all recipients, or for all but those that it refused. `acceptedAt` is when, by the provider's
   * clock, in milliseconds since 1970, where it says so.
   */
  | {
      readonly kind: 'sent';
      readonly messageId: string;
      readonly acceptedAt?: number;
      readonly refused?: readonly RefusedRecipient[];
    }
  /** No recipient can get it; `refused` says it of each where that is known. */
  | {
      readonly kind: 'bounced';
      readonly reason: BounceReason;
      readonly detail: string;
      readonly refused?: readonly RefusedRecipient[];
    }
  /** The provider refused this very message for good. */
  | { readonly kind: 'rejected'; readonly detail: string }
  /**
   * Not taken, for a reason that passes by itself; `after` in milliseconds when the provider named a time, `alone` when
   * it was refused together with others and may be taken, or refused for good, by itself.
   */
  | { readonly kind: 'busy'; readonly detail: string; readonly after?: number; readonly alone?: true }
  /**
   * Not taken because of our account with the provider: passes when an operator fixes the account. `scope` is set when the
   * refusal concerns only this sender, or only the provider's stream that carries the email: the rest of the account
   * continues to send.
   */
  | { readonly kind: 'account'; readonly detail: string; readonly scope?: 'sender' | 'stream' }
  /** It left us and no answer came back: it may have been taken. */
  | { readonly kind: 'unknown'; readonly detail: string };

/** One of several recipients who does not get an email, whatever became of the others. Nothing more is tried for him. */
export interface RefusedRecipient {
  /** The bare address as the provider was given it. */
  readonly recipient: string;
  readonly reason: BounceReason;
  /** A sentence for customers. */
  readonly detail: string;
}

/** What an outcome means for the email: it ends in `change`, or another attempt is made. */
export type Verdict =
  | { readonly change: 'sent' | 'bounced' | 'rejected' }
  | { readonly again: 'by policy' | 'after the pause' | 'after asking'; readonly after?: number };

/** The one place that says what is worth another attempt. */
export function verdict(outcome: SendOutcome): Verdict {
  switch (outcome.kind) {
    case 'sent':
    case 'bounced':
    case 'rejected':
      return { change: outcome.kind };
    case 'busy':
      return outcome.after === undefined ? { again: 'by policy' } : { again: 'by policy', after: outcome.after };
    case 'account':
      return { again: 'after the pause' };
    case 'unknown':
      return { again: 'after asking' };
  }
}

/** How often and how soon a message is tried; intervals in milliseconds, doubling from the first to the longest. */
export interface RetryPolicy {
  readonly maximumAttempts: number;
  readonly initialInterval: number;
  readonly maximumInterval: number;
}
