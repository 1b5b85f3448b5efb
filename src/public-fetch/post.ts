import { Pool } from 'undici';
import { isInRanges } from '../lib/ip-ranges.ts';
import { connectorTo, makeNetwork, type PublicFetchSettings, type Turn } from './connect.ts';
import { endpointUrl } from './endpoint-url.ts';
import { exchange, type ExchangeResult } from './exchange.ts';
import { isEncoded, reason } from './fetch.ts';
import { mayReach } from './public-address.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** An endpoint's response. */
export interface PostAnswer {
  readonly status: number;
  /** The unparsed header Retry-After. */
  readonly retryAfter: string | null;
  /** The first bytes of the body; null for a compressed one. */
  readonly body: Buffer | null;
}

/** A connection pool for one URL. The host name is resolved once, and connections are kept alive. */
export interface EndpointConnection {
  /**
   * Posts once, within 15 s in total. A received status counts even if the body fails.
   * @throws Unfetchable
   */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<PostAnswer>;
  /** Closes all connections. */
  readonly close: () => void;
}

/**
 * Creates a connection pool for a customer's URL. It connects at the first post.
 * @param connections the maximum number of open connections
 * @param maxBodyBytes the bytes of a response body to return
 */
export type ConnectToEndpoint = (url: string, connections: number, maxBodyBytes: number) => EndpointConnection;

/** A connection pool for the origin of a URL, and the path and query of the URL. */
interface Target {
  readonly pool: Pool;
  readonly path: string;
}

/** The deadline of one post: lookup, connection, request and response. */
const POST_DEADLINE_MS = 15_000;
/** Idle connections are closed after this time; the server may request a shorter one. */
const IDLE_TIMEOUT_MS = 3_000;

/**
 * @param deadlineMs time for one post
 * @throws when a range in the settings is not valid
 */
export function makePublicPost(settings: PublicFetchSettings, deadlineMs = POST_DEADLINE_MS): ConnectToEndpoint {
  const network = makeNetwork(settings, deadlineMs);

  async function connect(text: string, connections: number, turn: Turn): Promise<Target> {
    const url = endpointUrl(text, network.allowed);
    const may = url.protocol === 'http:' ? isInRanges : mayReach;
    const connector = await connectorTo(url, { ...network, mayReach: may }, turn);
    const pool = new Pool(url.origin, {
      connect: connector,
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { pool, path: url.pathname + url.search };
  }

  return (text, connections, maxBodyBytes) => {
    let target: Promise<Target> | undefined;
    const open = (signal: AbortSignal): Promise<Target> => {
      const opening = (target ??= connect(text, connections, { signal, holder: undefined, waitedMs: 0 }));
      // Clears a failed lookup, so that the next post retries it.
      opening.catch(() => {
        if (target === opening) target = undefined;
      });
      return opening;
    };
    return {
      async post(headers, body) {
        const deadline = new AbortController();
        const { signal } = deadline;
        const timer = setTimeout(() => deadline.abort(), deadlineMs);
        try {
          const { pool, path } = await open(signal);
          return toAnswer(await exchange(pool, { method: 'POST', path, headers, body }, maxBodyBytes, signal));
        } catch (error) {
          if (signal.aborted) throw new Unfetchable(`it takes longer than ${deadlineMs / 1_000} seconds`);
          if (error instanceof FetchBusy) throw new Unfetchable('its host name was not looked up in time');
          throw error instanceof Unfetchable ? error : new Unfetchable(reason(error), { cause: error });
        } finally {
          clearTimeout(timer);
        }
      },
      close() {
        target?.then(({ pool }) => pool.destroy()).catch(() => undefined);
      },
    };
  };
}

function toAnswer({ status, headers, body }: ExchangeResult): PostAnswer {
  const retryAfter = headers['retry-after'];
  return {
    status,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    body: isEncoded(headers) ? null : body,
  };
}
