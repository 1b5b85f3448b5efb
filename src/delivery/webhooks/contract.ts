import type { Logger } from 'pino';
import type { Seal } from '../../lib/seal.ts';
import type { ConnectToEndpoint } from '../../public-fetch/post.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** The dependencies of webhook workers. */
export interface WebhookDeps {
  readonly pool: Pool;
  /** Decrypts the secrets of endpoints. */
  readonly seal: Seal;
  readonly connectToEndpoint: ConnectToEndpoint;
  /**
   * A run ends after this time without due deliveries. The events of one email follow each other closely, and new connections
   * cost more than a few polls.
   */
  readonly idleTimeoutMs: number;
  /** Aborted at shutdown: no further attempt starts. */
  readonly stopping: AbortSignal;
  readonly log: Logger;
}

/** The right to post the deliveries of one endpoint. */
export interface Lease {
  readonly endpointId: string;
  /** The id of the worker. */
  readonly holder: string;
  /** Returns false once the lease may have lapsed. */
  readonly isHeld: () => boolean;
  /** The deliveries that may be read together now: a share of the memory of the worker. */
  readonly maxRead: () => number;
}
