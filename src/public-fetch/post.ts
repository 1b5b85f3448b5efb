import { type Dispatcher, Pool } from 'undici';
import { isAllowed } from '../lib/ip-ranges.ts';
import { connectorTo, makeNetwork, type PublicFetchSettings, type Turn } from './connect.ts';
import { endpointUrl } from './endpoint-url.ts';
import { isEncoded, reason } from './fetch.ts';
import { mayReach } from './public-address.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** What an endpoint answered. */
export interface PostAnswer {
  readonly status: number;
  /** The header Retry-After as it stands there. */
  readonly retryAfter: string | null;
  /** The first bytes of the body; null when it is compressed, which nobody asked for. */
  readonly body: Buffer | null;
}

/** The way to one URL for as long as it is open. Its name is resolved once, and connections are kept. */
export interface Line {
  /**
   * One POST, in 15 s with all that it takes. A status that has arrived counts, whatever becomes of the body.
   * @throws Unfetchable
   */
  readonly post: (headers: Readonly<Record<string, string>>, body: string) => Promise<PostAnswer>;
  /** Closes all connections. */
  readonly close: () => void;
}

/**
 * Opens the way to a URL that a caller gave us. Nothing is sent yet, and nothing can fail.
 * @param keep bytes of an answer's body that are wanted
 * @param holder the organization whose share of the lookups it uses
 */
export type OpenLine = (url: string, connections: number, keep: number, holder?: string) => Line;

/** Milliseconds for one post: name, connection, request and answer. */
const WITHIN = 15_000;
/** Bytes of a body that are read to its end, so that its connection can be used again. */
const READ = 65_536;
/** Milliseconds for which an idle connection is kept; less where the server says so. */
const IDLE = 3_000;

/**
 * @param within milliseconds that one post may take
 * @throws when a range in the settings is none
 */
export function makePublicPost(settings: PublicFetchSettings, within = WITHIN): OpenLine {
  const network = makeNetwork(settings);

  async function connect(text: string, connections: number, turn: Turn): Promise<Pool> {
    const url = endpointUrl(text, network.allowed);
    const may = url.protocol === 'http:' ? isAllowed : mayReach;
    const connector = await connectorTo(url, { ...network, mayReach: may }, turn);
    return new Pool(url.origin, {
      connect: connector,
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  return (text, connections, keep, holder) => {
    let pool: Promise<Pool> | undefined;
    const open = (signal: AbortSignal): Promise<Pool> => {
      const opening = (pool ??= connect(text, connections, { signal, holder, waitedMs: 0 }));
      // What could not be opened is tried anew by the next post.
      opening.catch(() => {
        if (pool === opening) pool = undefined;
      });
      return opening;
    };
    return {
      async post(headers, body) {
        const signal = AbortSignal.timeout(within);
        try {
          const { pathname, search } = new URL(text);
          const answer = await (
            await open(signal)
          ).request({ method: 'POST', path: pathname + search, headers, body, signal });
          return await toAnswer(answer, keep);
        } catch (error) {
          if (signal.aborted) throw new Unfetchable(`it takes longer than ${within / 1_000} seconds`);
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

/** Reads a body to its end, or 64 kB of it; one that breaks off is as long as it came. */
async function readSome(body: AsyncIterable<Buffer>, keep: number): Promise<Buffer> {
  const kept: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop early closes the connection.
    for await (const chunk of body) {
      if (bytes < keep) kept.push(chunk.subarray(0, keep - bytes));
      bytes += chunk.length;
      if (bytes >= READ) break;
    }
  } catch {
    // The status has arrived.
  }
  return Buffer.concat(kept);
}
