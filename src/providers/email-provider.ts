import type { EmailProviderName } from '../domain/email/email.ts';
import type { Feedback } from '../domain/email/feedback.ts';
import type { OutgoingEmail } from '../domain/email/outgoing.ts';
import type { SendOutcome } from '../domain/email/retry.ts';

/** One way for email to leave. An adapter classifies everything that can happen and throws only for bugs. */
export interface EmailProvider {
  readonly name: EmailProviderName;
  /** Emails that one call takes at most. */
  readonly callSize: number;
  /**
   * Unfinished emails beside which a group claims and hands over the next ones: a few that the provider is slow with must not
   * hold up the others. 0 if a call begins when the one before has ended.
   */
  readonly overlap: number;
  /** Whether the provider tracks opens and clicks itself, as `tracking` of an email requests. */
  readonly hasTracking: boolean;
  /** Why the provider cannot deliver this email at all, naming the limit; undefined if it can. */
  refusal(email: OutgoingEmail): string | undefined;
  /**
   * The provider's stream of an email. A call contains emails of one stream only, because a provider may refuse a
   * stream. Missing where a provider has no streams.
   */
  readonly streamOf?: (email: OutgoingEmail) => string;
  /**
   * Hands emails over in one call.
   * @param call names the call, so that `find` can ask about it
   * @param onOutcome called with the outcome of the email at a position as soon as that is known, by a provider to whom
   * emails go one by one
   * @returns an outcome for each email, in their order
   */
  send(
    emails: readonly OutgoingEmail[],
    call: string,
    onOutcome?: (position: number, outcome: SendOutcome) => void,
  ): Promise<SendOutcome[]>;
  /**
   * Which emails of a call the provider has, with its own message ids. Missing where a provider cannot be asked.
   * Rejects when it cannot be asked now.
   * @param call identifies the call, or an email and with it any call that contained it
   */
  find?(call: string): Promise<ReadonlyMap<string, string>>;
  /**
   * The provider's reports about one message so far, equal to its callbacks, so none counts twice.
   * Missing where a provider cannot be asked. Rejects when it cannot be asked now.
   */
  readonly reports?: (emailId: string, messageId: string) => Promise<Feedback[]>;
}
