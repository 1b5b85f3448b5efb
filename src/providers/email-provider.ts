import type { EmailProviderName } from '../domain/email/email.ts';
import type { Feedback } from '../domain/email/feedback.ts';
import type { OutgoingEmail } from '../domain/email/outgoing.ts';
import type { SendOutcome } from '../domain/email/retry.ts';

/** The connections that a worker process opens to a provider that takes one email at a time on each. */
export interface Connections {
  /** For calls that are answered in the usual time. */
  readonly usual: number;
  /** Further connections, for calls whose reply is late. */
  readonly late: number;
}

/** A provider that sends email. Its adapter classifies every outcome of a call and throws only for bugs. */
export interface EmailProvider {
  readonly name: EmailProviderName;
  /** Maximum number of emails in one call. */
  readonly callSize: number;
  /**
   * A group starts its next call while at most this many emails are unfinished, so that a few slow emails do not delay the
   * others. 0 if a call starts only after the previous one has ended.
   */
  readonly overlap: number;
  /** Set for a provider that sends each email on a connection of its own. Each email of a call is then sent separately. */
  readonly connections?: Connections;
  /** True if the provider itself tracks opens and clicks, as `tracking` of an email requests. */
  readonly hasTracking: boolean;
  /** True if `send` calls `handOver` before the last bytes of each email, so that without that call it was certainly not accepted. */
  readonly awaitsHandOver?: true;
  /** Returns the limit because of which the provider cannot deliver this email, as a sentence; undefined if it can. */
  refusal(email: OutgoingEmail): string | undefined;
  /**
   * The provider's stream of an email. A call contains emails of one stream only, because a provider may refuse a
   * stream. Missing where a provider has no streams.
   */
  readonly streamOf?: (email: OutgoingEmail) => string;
  /**
   * Sends emails in one call.
   * @param call identifies the call for `find`
   * @param onOutcome called by a provider that accepts emails one by one, with the position of each as soon as its outcome is
   * known
   * @param handOver called by a provider with `awaitsHandOver`, with the position of an email. The last bytes of the email leave only
   * after it has resolved; if it rejects, the email is not accepted
   * @returns an outcome for each email, in their order
   */
  send(
    emails: readonly OutgoingEmail[],
    call: string,
    onOutcome?: (position: number, outcome: SendOutcome) => void,
    handOver?: (position: number) => Promise<void>,
  ): Promise<SendOutcome[]>;
  /**
   * Returns the emails of a call that the provider has, with the provider's message ids. Missing if the provider has no search.
   * Rejects if the provider is unreachable.
   * @param call identifies the call, or an email and with it any call that contained it
   */
  find?(call: string): Promise<ReadonlyMap<string, string>>;
  /**
   * Returns the provider's reports about one message so far. They equal its callbacks, so none counts twice. Missing if the
   * provider has no such API. Rejects if the provider is unreachable.
   */
  readonly reports?: (emailId: string, messageId: string) => Promise<Feedback[]>;
}
