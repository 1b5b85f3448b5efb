import { type Dispatcher, Pool } from 'undici';
import { isAllowed } from '../lib/ip-ranges.ts';
import { connectorTo, makeNetwork, type PublicFetchSettings, type Turn } from './connect.ts';
import { endpointUrl } from './endpoint-url.ts';
import { isEncoded, reason } from './fetch.ts';
import { mayReach } from './public-address.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** An endpoint's response. */
export interface PostAnswer {
  readonly status: number;
  /** The header Retry-After, not parsed. */
  readonly retryAfter: string | null;
  /** The first bytes of the body; null for a compressed one. */
  readonly body: Buffer | null;
}

/** Connections to one URL. Its name is resolved once, and connections are kept alive. */
export interface Line {
  /**
   * Posts once, within 15 s in total. A received status counts even if the body fails.
   * @throws Unfetchable
   */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<PostAnswer>;
  /** Closes all connections. */
  readonly close: () => void;
}

/**
 * Creates a line to a customer's URL. It does not connect yet, and does not fail.
 * @param keep bytes of the response body to return
 * @param holder the organization whose share of the lookups it uses
 */
export type OpenLine = (url: string, connections: number, keep: number, holder?: string) => Line;

/** Time for one post: lookup, connection, request and response. */
const POST_DEADLINE_MS = 15_000;
/** Bytes of a body that are read, so that its connection can be reused. */
const MAX_READ_BYTES = 65_536;
/** Time for which an idle connection is kept; the server may request less. */
const IDLE_TIMEOUT_MS = 3_000;

/**
 * @param deadlineMs time for one post
 * @throws when a range in the settings is not valid
 */
export function makePublicPost(settings: PublicFetchSettings, deadlineMs = POST_DEADLINE_MS): OpenLine {
  const network = makeNetwork(settings);

  async function connect(text: string, connections: number, turn: Turn): Promise<Pool> {
    const url = endpointUrl(text, network.allowed);
    const may = url.protocol === 'http:' ? isAllowed : mayReach;
    const connector = await connectorTo(url, { ...network, mayReach: may }, turn);
    return new Pool(url.origin, {
      connect: connector,
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  return (text, connections, keep, holder) => {
    let pool: Promise<Pool> | undefined;
    const open = (signal: AbortSignal): Promise<Pool> => {
      const opening = (pool ??= connect(text, connections, { signal, holder, waitedMs: 0 }));
      // The next post retries a failed lookup.
      opening.catch(() => {
        if (pool === opening) pool = undefined;
      });
      return opening;
    };
    return {
      async post(headers, body) {
        const signal = AbortSignal.timeout(deadlineMs);
        try {
          const { pathname, search } = new URL(text);
          const answer = await (
            await open(signal)
          ).request({ method: 'POST', path: pathname + search, headers, body, signal });
          return await toAnswer(answer, keep);
        } catch (error) {
          if (signal.aborted) throw new Unfetchable(`it takes longer than ${deadlineMs / 1_000} seconds`);
          if (error instanceof FetchBusy) throw new Unfetchable('its host name was not looked up in time');
          throw error instanceof Unfetchable ? error : new Unfetchable(reason(error), { cause: error });
        }
      },
      close() {
        pool?.then((opened) => opened.destroy()).catch(() => undefined);
      },
    };
  };
}

async function toAnswer({ statusCode, headers, body }: Dispatcher.ResponseData, keep: number): Promise<PostAnswer> {
  const retryAfter = headers['retry-after'];
  const read = await readSome(body, keep);
  return {
    status: statusCode,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    body: isEncoded(headers) ? null : read,
  };
}

/** Reads up to 64 kB of a body and returns its first bytes. An interrupted body is returned as far as it was received. */
export async function readSome(body: AsyncIterable<Buffer>, keep: number): Promise<Buffer> {
  const kept: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop early closes the connection.
    for await (const chunk of body) {
      if (bytes < keep) kept.push(chunk.subarray(0, keep - bytes));
      bytes += chunk.length;
      if (bytes >= MAX_READ_BYTES) break;
    }
  } catch {
    // The status has been received.
  }
  return Buffer.concat(kept);
}
