import type { Logger } from 'pino';
import type { Seal } from '../../lib/seal.ts';
import type { OpenLine } from '../../public-fetch/post.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** The dependencies of the webhook activities. */
export interface WebhookDeps {
  readonly pool: Pool;
  /** Decrypts the secrets of endpoints. */
  readonly seal: Seal;
  readonly openLine: OpenLine;
  /**
   * A run ends after so long without due deliveries. The events of one email follow each other closely, and waking a workflow
   * costs more than a few polls.
   */
  readonly idleTimeoutMs: number;
  /** Aborted at shutdown: no further attempt starts. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
}

/** The remaining work of an endpoint. */
export type Drained =
  /** More deliveries are due. */
  | { readonly state: 'again' }
  /** The next delivery is due in `inMs` by the database's clock; null without one. */
  | { readonly state: 'asleep'; readonly inMs: number | null }
  /** The endpoint was deleted or is disabled. */
  | { readonly state: 'closed' };
