import type { ChatProviderName, OutgoingChat } from '../domain/chat/chat.ts';

/** What became of one message in one call, as its adapter classified it. `detail` is a sentence for customers. */
export type ChatOutcome =
  | { readonly kind: 'sent'; readonly messageId: string }
  /** Refused for good; `code` is the provider's own. */
  | { readonly kind: 'refused'; readonly detail: string; readonly code?: string }
  /** Not taken, for a reason that passes by itself; `after` in milliseconds when the provider named a time. */
  | { readonly kind: 'busy'; readonly detail: string; readonly code?: string; readonly after?: number }
  /** Not accepted because of our account at the provider; passes when the account is repaired. */
  | { readonly kind: 'account'; readonly detail: string; readonly code?: string }
  /** It left us and no answer came back: it may have been taken. */
  | { readonly kind: 'unknown'; readonly detail: string };

/** What a provider reports of a message after the hand-over. */
export interface ChatReport {
  readonly change: 'sent' | 'delivered' | 'read' | 'undelivered' | 'failed';
  /** Ours, where the provider gave it back. */
  readonly messageId: string | undefined;
  readonly providerMessageId: string;
  /** The same for every repetition of this report. */
  readonly dedupeKey: string;
  /** Of a failure: a sentence, and the provider's own code. */
  readonly error?: string;
  readonly errorCode?: string;
  /** Of a callback: between whom the message went, as far as it states that. It must be true of the message. */
  readonly endpoints?: { readonly from?: string; readonly to?: string; readonly phoneNumberId?: string };
}

/** One number's way out. An adapter classifies everything that can happen and throws only for bugs. */
export interface ChatProvider {
  readonly name: ChatProviderName;
  /** Why the provider cannot deliver this message at all, naming the limit; undefined if it can. */
  refusal(message: OutgoingChat): string | undefined;
  send(message: OutgoingChat): Promise<ChatOutcome>;
  /**
   * Its own id of a message that may have been taken since, or undefined when it does not have it. Missing where a
   * provider cannot be asked. Rejects when it cannot be asked now.
   * @param since Unix milliseconds before which it was certainly not sent
   * @param isAnothers whether an id belongs to another message: two messages may have the same text and recipient
   */
  find?(
    message: OutgoingChat,
    since: number,
    isAnothers?: (providerMessageId: string) => Promise<boolean>,
  ): Promise<string | undefined>;
  /** What has become of a message that it took; undefined when nothing new is known. Missing where it cannot be asked. */
  report?(message: OutgoingChat, providerMessageId: string): Promise<ChatReport | undefined>;
}
