import type { Logger } from 'pino';
import type { Attachment } from '../../domain/email/attachments.ts';
import type { EmailStatus } from '../../domain/email/email.ts';
import type { OutgoingFile } from '../../domain/email/outgoing.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import type { StoredBodies } from '../../store/emails/attempts.ts';
import type { EmailContents } from '../../store/emails/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import type { ProviderPauses } from '../pauses.ts';
import type { AttemptRecorder } from '../recorder.ts';
import type { SendingDomains } from './sending-domains.ts';

/** What the email activities work with. */
export interface EmailDeps {
  readonly pool: Pool;
  /** Opens what is stored of emails. */
  readonly contents: EmailContents;
  /** In the order they are tried; never empty. */
  readonly providers: readonly EmailProvider[];
  /** The longest wait between two attempts, in milliseconds. */
  readonly maximumInterval: number;
  /** What to do about an ambiguous call whose provider cannot be asked. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** How often at most one email is sent again after such a call. */
  readonly ambiguousSendMaxRepeats: number;
  /** Milliseconds after a provider's first "not found" when a second one confirms it: its search may lag. */
  readonly confirmNotFoundAfterMs: number;
  /** Accounts that cannot send now. */
  readonly pauses: ProviderPauses;
  /** Milliseconds for which a message waits because of our account with its provider before it fails. */
  readonly accountRetryForMs: number;
  readonly recorder: AttemptRecorder;
  /** Aborted when this worker is to end: from then on it claims nothing, and records what it has sent. */
  readonly stopping: AbortSignal;
  /** Reads what is too large to be read when it is claimed. */
  readonly largeEmails: LargeEmails;
  /** Delivers emails that may have ended a worker; undefined in the process that does so, and where there is none. */
  readonly isolation?: Isolation;
  /** Looks at the domains of emails that are about to leave. */
  readonly sendingDomains: SendingDomains;
  /** Where the recipient at this position (counted from 0) of a marketing email says that he wants no more of them. */
  readonly unsubscribeUrl: (orgId: string, emailId: string, recipient: number) => string;
  readonly log: Logger;
}

/** An email that is due according to its workflow. */
export interface Member {
  readonly id: string;
  /** The `schedule_version` that the workflow's timer was set for. */
  readonly version: number;
  /** The workflow that asks, when that is not the email's own: it may have left us. */
  readonly carrier?: string;
}

/** What a delivery came to, for the workflow that carries the email. */
export type MemberResult =
  /** Nothing is left to do; `provider` when one was asked. */
  | { readonly id: string; readonly state: 'ended'; readonly status: EmailStatus; readonly provider?: string }
  /** Moved to another time, or our timer was early: due in `inMs` by the database's clock. */
  | {
      readonly id: string;
      readonly state: 'waiting';
      readonly version: number;
      readonly dueAt: string;
      readonly inMs: number;
    }
  /**
   * Not taken this time; `after` in milliseconds when the retry policy should not decide, `alone` when it may fare
   * better by itself. `postponed` when it was not attempted for a reason of our own, or when the next part of it is to
   * follow: the next attempt comes after `after`, however often that happens.
   */
  | {
      readonly id: string;
      readonly state: 'again';
      readonly reason: string;
      readonly after?: number;
      readonly alone?: boolean;
      readonly postponed?: boolean;
    };

/** What a provider call resulted in for an email: `partial` when it took all copies it was given and others are left. */
export type CallResult = MemberResult | { readonly id: string; readonly state: 'partial' };

/** An email that is too large to be read without memory for it, or that has files. */
export interface LargeEmail {
  readonly member: Member;
  readonly orgId: string;
  /** Bytes of its bodies and files, and of the copies of it that one provider call takes. */
  readonly bytes: number;
  readonly attachments: readonly Attachment[];
}

/** What was read of large emails, by their ids; files are `lost` when the store does not have them as they were stored. */
export type LargeContents = ReadonlyMap<
  string,
  Omit<StoredBodies, 'id'> & { readonly files: readonly OutgoingFile[] | 'lost' }
>;

/** Reads large emails that are about to be sent, within the memory that one worker has for them. */
export interface LargeEmails {
  /**
   * Reads emails of one organization and calls `work` with them; their memory is reserved until that is done.
   * @returns `no memory` when it was not available within two seconds, `unreadable` when the files cannot be read now
   */
  readonly use: <T>(
    pool: Pool,
    emails: readonly LargeEmail[],
    work: (contents: LargeContents) => Promise<T>,
  ) => Promise<T | 'no memory' | 'unreadable'>;
}

/** A process of its own in which one email after the other is begun. */
export interface Isolation {
  /**
   * @param overlap whether the next email may begin almost at once, while the provider is still at this one
   * @returns `busy` when it had to wait too long for its turn, `crashed` when the process ended by itself just when it had
   * begun this email, `ended` when it ended otherwise
   */
  readonly deliver: (member: Member, overlap: boolean) => Promise<MemberResult | 'busy' | 'crashed' | 'ended'>;
}
