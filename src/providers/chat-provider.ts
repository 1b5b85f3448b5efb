import type { ChatProviderName, OutgoingChat } from '../domain/chat/chat.ts';

/** The outcome of one call for one message. `detail` is a sentence for customers. */
export type ChatOutcome =
  | { readonly kind: 'sent'; readonly messageId: string }
  /** Refused permanently; `code` is the provider's own. */
  | { readonly kind: 'refused'; readonly detail: string; readonly code?: string }
  /** Not accepted for a transient reason; `afterMs` is the provider's Retry-After. */
  | { readonly kind: 'busy'; readonly detail: string; readonly code?: string; readonly afterMs?: number }
  /** Not handed to the provider, for a reason of ours; not an attempt. `afterMs` is the delay until it is tried. */
  | { readonly kind: 'postponed'; readonly detail: string; readonly afterMs: number }
  /** Not accepted because of our account at the provider, until the operator has repaired it. */
  | { readonly kind: 'account'; readonly detail: string; readonly code?: string }
  /** Ambiguous: no response arrived, or one that does not decide it. The provider may have accepted the message. */
  | { readonly kind: 'unknown'; readonly detail: string };

/** A provider's report about a message that it has accepted. */
export interface ChatReport {
  readonly change: 'sent' | 'delivered' | 'read' | 'undelivered' | 'failed';
  /** Our id, if the report contains it. */
  readonly messageId: string | undefined;
  readonly providerMessageId: string;
  /** Equal for repetitions of this report. */
  readonly dedupeKey: string;
  /** For a failure: a sentence, and the provider's own code. */
  readonly error?: string;
  readonly errorCode?: string;
  /** For a callback: the sender and recipient that it states. They must match the message. */
  readonly endpoints?: { readonly from?: string; readonly to?: string; readonly phoneNumberId?: string };
}

/** The times between which a provider may have created the message of a call, as Unix milliseconds. */
export interface CreationPeriod {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** A provider that sends the messages of one number. Its adapter classifies every outcome of a call and throws only for bugs. */
export interface ChatProvider {
  readonly name: ChatProviderName;
  /** Returns the limit because of which the provider cannot deliver this message, as a sentence; undefined if it can. */
  refusal(message: OutgoingChat): string | undefined;
  /**
   * Sends a message.
   * @param expired called before a request whose preparation may be slow; once the caller's claim has expired, it returns the
   * outcome instead of the request
   */
  send(message: OutgoingChat, expired?: () => ChatOutcome | undefined): Promise<ChatOutcome>;
  /**
   * Returns the provider's id of a message that it may have accepted; undefined if it does not have the message. Missing if the
   * provider has no search. Rejects if the provider is unreachable.
   * @param created a message that the provider created at another time is not this one
   * @param isTaken returns true if the provider's id belongs to another message, or if `alsoFits` returns true for another
   * message whose call is ambiguous. Two messages may have the same text and recipient
   */
  find?(
    message: OutgoingChat,
    created: CreationPeriod,
    isTaken?: (providerMessageId: string, alsoFits?: (other: OutgoingChat) => boolean) => Promise<boolean>,
  ): Promise<string | undefined>;
  /** Returns the status of an accepted message; undefined if it has not changed. Missing if the provider has no such API. */
  report?(message: OutgoingChat, providerMessageId: string): Promise<ChatReport | undefined>;
}
