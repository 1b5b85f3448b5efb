import type { Logger } from 'pino';
import type { ChatProviderName, ChatStatus } from '../../domain/chat/chat.ts';
import type { ChatProvider } from '../../providers/chat-provider.ts';
import type { SendingNumber, StoredChat } from '../../store/chat/attempts.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import type { ChatPace } from './pace.ts';
import type { ProviderPauses } from '../pauses.ts';
import type { AttemptRecorder } from '../recorder.ts';

/** What the chat activities work with. */
export interface ChatDeps {
  readonly pool: Pool;
  /** A number's way out, with its own credentials or those of the settings. */
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  readonly pace: ChatPace;
  /** The longest wait between two attempts, in milliseconds. */
  readonly maximumInterval: number;
  /** What to do about a call that may have been taken when its provider cannot be asked. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** How often at most one message is sent again after such a call. */
  readonly ambiguousSendMaxRepeats: number;
  /** Milliseconds after a provider's first "not found" when a second one confirms it. */
  readonly confirmNotFoundAfterMs: number;
  /** Accounts that cannot send now. */
  readonly pauses: ProviderPauses;
  /** Milliseconds for which a message waits because of our account with its provider before it fails. */
  readonly accountRetryForMs: number;
  readonly recorder: AttemptRecorder;
  /** Aborted when this worker is to end: from then on it claims nothing, and records what it has sent. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
}

/** A message that nobody else may send now, with its attempt written down. */
export interface ClaimedChat {
  readonly message: StoredChat;
  readonly provider: ChatProvider;
  readonly n: number;
  readonly call: string;
  /** Of the monotonic clock, in milliseconds. */
  readonly claimedAt: number;
  /** Unix milliseconds. */
  readonly claimedAtUnixMs: number;
}

/** What an attempt came to, for the workflow that carries the message. */
export type ChatResult =
  /** Nothing is left to do; `provider` when one was asked. */
  | { readonly state: 'ended'; readonly status: ChatStatus; readonly provider?: ChatProviderName }
  /** Not taken this time; `after` in milliseconds when the retry policy should not decide. */
  | { readonly state: 'again'; readonly reason: string; readonly after?: number };
