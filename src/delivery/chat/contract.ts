import type { Logger } from 'pino';
import type { ChatProviderName, ChatStatus } from '../../domain/chat/chat.ts';
import type { ChatProvider } from '../../providers/chat-provider.ts';
import type { SendingNumber, StoredChat } from '../../store/chat/attempts.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import type { ChatPace } from './pace.ts';
import type { ProviderPauses } from '../pauses.ts';
import type { AttemptRecorder } from '../recorder.ts';

/** The dependencies of the chat activities. */
export interface ChatDeps {
  readonly pool: Pool;
  /** The provider of a number, with the number's own credentials or those of the settings. */
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  readonly pace: ChatPace;
  /** The maximum time between two attempts. */
  readonly maxIntervalMs: number;
  /** Applies to an ambiguous call whose provider cannot be queried. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** The maximum number of repeated sends of one message after ambiguous calls. */
  readonly ambiguousSendMaxRepeats: number;
  /** The time after a provider's first "not found" from which a second one confirms it. */
  readonly confirmNotFoundAfterMs: number;
  /** Pauses of provider accounts. */
  readonly pauses: ProviderPauses;
  /** A message that waits for a paused account fails after this time. */
  readonly accountRetryForMs: number;
  readonly recorder: AttemptRecorder;
  /** Aborted at shutdown. The worker then claims nothing more but still records results. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
}

/** A message that no other worker may send now; its attempt is recorded. */
export interface ClaimedChat {
  readonly message: StoredChat;
  readonly provider: ChatProvider;
  readonly n: number;
  readonly call: string;
  /** Milliseconds of the monotonic clock. */
  readonly claimedAt: number;
  readonly claimedAtUnixMs: number;
}

/** The result of an attempt for the workflow that delivers the message. */
export type ChatResult =
  /** The message has its final status. `provider` is set if a provider was called. */
  | { readonly state: 'ended'; readonly status: ChatStatus; readonly provider?: ChatProviderName }
  /** Not accepted by the provider. `afterMs` overrides the delay of the retry policy. */
  | { readonly state: 'again'; readonly reason: string; readonly afterMs?: number };
