import type { Logger } from 'pino';
import type { Seal } from '../../lib/seal.ts';
import type { OpenLine } from '../../public-fetch/post.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** What the webhook activities work with. */
export interface WebhookDeps {
  readonly pool: Pool;
  /** Opens the secrets of endpoints. */
  readonly seal: Seal;
  readonly openLine: OpenLine;
  /**
   * Milliseconds without work after which a shift ends. The events of one email follow each other closely, and to wake a
   * workflow costs more than to look some times more.
   */
  readonly lingers: number;
  /** Aborted when this worker is to end: no further try is begun. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
}

/** What is left of an endpoint's work. */
export type Drained =
  /** More is due. */
  | { readonly state: 'again' }
  /** Nothing is due before `inMs` milliseconds by the database's clock, or before somebody wakes it. */
  | { readonly state: 'asleep'; readonly inMs: number | null }
  /** The endpoint was deleted or is disabled. */
  | { readonly state: 'closed' };
