import type { Attachment } from '../../domain/email/attachments.ts';
import type { OutgoingEmail, OutgoingFile } from '../../domain/email/outgoing.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import type { Seal } from '../../lib/seal.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import type { StoredBodies } from '../../store/emails/attempts.ts';
import type { EmailContents } from '../../store/emails/contents.ts';
import type {
  Answer,
  AttemptedMessage,
  ChannelTypes,
  ClaimedMessage,
  DeliveryDeps,
  Member,
  MemberResult,
} from '../contract.ts';
import type { SendingDomains } from './sending-domains.ts';
import type { Track } from './tracking.ts';

/** The dependencies of the email activities. */
export interface EmailDeps extends DeliveryDeps {
  /** Decrypts stored content. */
  readonly contents: EmailContents;
  /** Opens the links of emails about accounts. */
  readonly accountLinks: Pick<Seal, 'open'>;
  /** In order of preference; never empty. */
  readonly providers: readonly EmailProvider[];
  /** Reads emails that are too large to be read by the claim. */
  readonly largeEmails: LargeEmails;
  /** Delivers emails that may have crashed a worker; undefined in the isolated process itself. */
  readonly isolation?: Isolation;
  /** Checks the sender domains of emails before they are sent. */
  readonly sendingDomains: SendingDomains;
  /** The unsubscribe link of the recipient at this position (from 0) of a marketing email. */
  readonly unsubscribeUrl: (orgId: string, emailId: string, recipient: number) => string;
  /** Tracks an email for a provider that has no tracking of its own. */
  readonly track: Track;
}

/**
 * An email or one of its copies before the unsubscribe link is inserted. All copies of an email share its bodies, so that they
 * take no memory until `toMessage` creates the text of each.
 */
export interface Copy extends OutgoingEmail {
  /** The position of its only recipient in the email, from 0 over to, cc and bcc; null if it has several. */
  readonly recipient: number | null;
}

/** An email that no other worker may send now. */
export interface ClaimedEmail extends ClaimedMessage {
  /** The email itself, or as many copies of a marketing email as one provider call takes; at least one. */
  readonly copies: readonly Copy[];
  readonly provider: EmailProvider;
}

/** An email whose last attempt must be reconciled or applied before it is sent again. */
export interface AttemptedEmail extends AttemptedMessage {
  /** True if some of its copies are still to be sent. */
  readonly hasCopiesLeft: boolean;
}

/** An email that cannot be claimed yet. */
export type HeldEmail =
  /** Its bodies or files must be read first. */
  | { readonly kind: 'content'; readonly email: LargeEmail }
  /** The isolated process delivers it. */
  | { readonly kind: 'isolation'; readonly member: Member };

/** A sent email with the outcome of each of its copies. */
export interface EmailOutcomes {
  readonly email: ClaimedEmail;
  readonly outcomes: readonly [SendOutcome, ...SendOutcome[]];
}

export interface AnsweredEmail extends Answer {
  readonly sent: EmailOutcomes;
}

/** The types of the channel. */
export interface EmailTypes extends ChannelTypes {
  readonly claimed: ClaimedEmail;
  readonly attempted: AttemptedEmail;
  readonly held: HeldEmail;
  readonly answer: AnsweredEmail;
}

/** An email with attachments, or so large that memory must be reserved before it is read. */
export interface LargeEmail {
  readonly member: Member;
  readonly orgId: string;
  /** The size of its bodies and files, and of the copies of it in one provider call. */
  readonly bytes: number;
  readonly attachments: readonly Attachment[];
}

/** The contents of large emails by id. Files are `lost` if the store does not have them in their stored size. */
export type LargeContents = ReadonlyMap<
  string,
  Omit<StoredBodies, 'id'> & { readonly files: readonly OutgoingFile[] | 'lost' }
>;

/** Reads large emails before they are sent, within the memory limit of a worker. */
export interface LargeEmails {
  /**
   * Reads emails of one organization and calls `work` with them; their memory is reserved until `ended` of its result is fulfilled.
   * @returns `no memory` if it was not available within two seconds, or if too many emails wait for it already; `unreadable` if
   * the files cannot be read now
   */
  readonly use: <T extends { readonly ended: Promise<unknown> }>(
    emails: readonly LargeEmail[],
    work: (contents: LargeContents) => Promise<T>,
  ) => Promise<T | 'no memory' | 'unreadable'>;
}

/** A child process that starts one email at a time. */
export interface Isolation {
  /**
   * @param mayOverlap true if the next email may start while the provider still handles this one
   * @returns `busy` if it waited too long for its turn, `crashed` if the process ended by itself shortly after it had started
   * this email or while it had no other, `ended` if the process ended otherwise
   */
  readonly deliver: (member: Member, mayOverlap: boolean) => Promise<MemberResult | 'busy' | 'crashed' | 'ended'>;
}
