import type { EmailProviderName } from '../domain/email.ts';
import type { Feedback } from '../domain/feedback.ts';
import type { OutgoingEmail } from '../domain/outgoing.ts';
import type { SendOutcome } from '../domain/retry.ts';

/** One way for email to leave. An adapter classifies everything that can happen and throws only for bugs. */
export interface EmailProvider {
  readonly name: EmailProviderName;
  /** Emails that one call takes at most. */
  readonly callSize: number;
  /** Why it cannot carry this email at all, as a sentence that names the limit; undefined when it can. */
  refusal(email: OutgoingEmail): string | undefined;
  /**
   * Hands emails over in one call.
   * @param call names the call, so that `find` can ask about it
   * @returns an outcome for each email, in their order
   */
  send(emails: readonly OutgoingEmail[], call: string): Promise<SendOutcome[]>;
  /**
   * Which emails of a call the provider has, with its own message ids. Missing where a provider cannot be asked.
   * Rejects when it cannot be asked now.
   * @param call names the call, or an email: then whatever call carried it
   */
  find?(call: string): Promise<ReadonlyMap<string, string>>;
  /**
   * What the provider has to tell about one message so far: the same reports as its callbacks, so that none counts twice.
   * Missing where a provider cannot be asked. Rejects when it cannot be asked now.
   */
  readonly reports?: (emailId: string, messageId: string) => Promise<Feedback[]>;
}
