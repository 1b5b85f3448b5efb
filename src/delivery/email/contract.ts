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

/** The dependencies of the email activities. */
export interface EmailDeps {
  readonly pool: Pool;
  /** Decrypts stored content. */
  readonly contents: EmailContents;
  /** In order of preference; never empty. */
  readonly providers: readonly EmailProvider[];
  /** The maximum time between two attempts. */
  readonly maxIntervalMs: number;
  /** Applies to an ambiguous call whose provider cannot be queried. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** The maximum number of repeated sends of one email after ambiguous calls. */
  readonly ambiguousSendMaxRepeats: number;
  /** The time after a provider's first "not found" from which a second one confirms it: its search may lag. */
  readonly confirmNotFoundAfterMs: number;
  /** Pauses of provider accounts. */
  readonly pauses: ProviderPauses;
  /** A message that waits for a paused account fails after this time. */
  readonly accountRetryForMs: number;
  readonly recorder: AttemptRecorder;
  /** Aborted at shutdown. The worker then claims nothing more but still records results. */
  readonly stopping: AbortSignal;
  /** Reads emails that are too large to be read by the claim. */
  readonly largeEmails: LargeEmails;
  /** Delivers emails that may have crashed a worker; undefined in the isolated process itself. */
  readonly isolation?: Isolation;
  /** Checks the sender domains of emails before they are sent. */
  readonly sendingDomains: SendingDomains;
  /** The unsubscribe link of the recipient at this position (from 0) of a marketing email. */
  readonly unsubscribeUrl: (orgId: string, emailId: string, recipient: number) => string;
  readonly log: Logger;
}

/** An email that is due according to its workflow. */
export interface Member {
  readonly id: string;
  /** The `schedule_version` that the workflow's timer was set for. */
  readonly version: number;
  /** The id of the calling workflow if that is a group; the email may have been detached from it. */
  readonly workflowId?: string;
}

/** The result of a delivery for the workflow that delivers the email. */
export type MemberResult =
  /** The email has its final status. `provider` is set if a provider was called. */
  | { readonly id: string; readonly state: 'ended'; readonly status: EmailStatus; readonly provider?: string }
  /** It was rescheduled, or our timer fired early: it is due in `inMs` by the database's clock. */
  | {
      readonly id: string;
      readonly state: 'waiting';
      readonly version: number;
      readonly dueAt: string;
      readonly inMs: number;
    }
  /**
   * Not accepted by the provider. `afterMs` overrides the delay of the retry policy. `alone` is set if it should be retried
   * outside its group. `postponed` is set if it was not attempted for a reason of ours, or if more of its copies follow: the
   * next attempt comes after `afterMs` without backoff.
   */
  | {
      readonly id: string;
      readonly state: 'again';
      readonly reason: string;
      readonly afterMs?: number;
      readonly alone?: boolean;
      readonly postponed?: boolean;
    };

/** The result of a provider call for an email. `partial`: all copies of the call were accepted, and others are left. */
export type CallResult = MemberResult | { readonly id: string; readonly state: 'partial' };

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
   * Reads emails of one organization and calls `work` with them; their memory is reserved until that is done.
   * @returns `no memory` if it was not available within two seconds, `unreadable` if the files cannot be read now
   */
  readonly use: <T>(
    pool: Pool,
    emails: readonly LargeEmail[],
    work: (contents: LargeContents) => Promise<T>,
  ) => Promise<T | 'no memory' | 'unreadable'>;
}

/** A child process that starts one email at a time. */
export interface Isolation {
  /**
   * @param overlap whether the next email may start while the provider still handles this one
   * @returns `busy` if it waited too long for its turn, `crashed` if the process ended by itself shortly after it had started
   * this email, `ended` if the process ended otherwise
   */
  readonly deliver: (member: Member, overlap: boolean) => Promise<MemberResult | 'busy' | 'crashed' | 'ended'>;
}
