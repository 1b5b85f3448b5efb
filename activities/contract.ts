import type { Logger } from 'pino';
import type { EmailStatus } from '../src/domain/email.ts';
import type { EmailProvider } from '../src/providers/email-provider.ts';
import type { EmailContents } from '../src/store/email-contents.ts';
import type { Pool } from '../src/store/pool.ts';
import type { EmailFiles } from './files.ts';
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
  /** What to do about a call that may have been taken when its provider cannot be asked. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** How often at most one email is sent again after such a call. */
  readonly ambiguousSendMaxRepeats: number;
  /** Milliseconds after which a provider's second "I do not have it" is believed: its search may lag. */
  readonly believeDenialAfter: number;
  readonly files: EmailFiles;
  /** Looks at the domains of emails that are about to leave. */
  readonly sendingDomains: SendingDomains;
  /** Where the recipient at this position (counted from 0) of a marketing email says that he wants no more of them. */
  readonly unsubscribeUrl: (orgId: string, emailId: string, recipient: number) => string;
  readonly log: Logger;
}

/** An email that a workflow believes to be due. */
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
   * better by itself.
   */
  | {
      readonly id: string;
      readonly state: 'again';
      readonly reason: string;
      readonly after?: number;
      readonly alone?: boolean;
    };
