import type { Dispatcher } from 'undici';
import { connectTo, makeNetwork, type Network, type PublicFetchSettings, type Turn, waitFor } from './connect.ts';
import { publicUrl } from './public-url.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** How many bytes may still be fetched; counts down, also for several fetches that share it. */
export interface Budget {
  left: number;
  /** The organization for which it is fetched. */
  readonly holder?: string;
  readonly memory?: FetchMemory;
}

/** The memory that fetched bytes are held in until the caller has finished with them. */
export interface FetchMemory {
  /** @returns whether the bytes are held now */
  readonly tryTake: (bytes: number) => boolean;
  /** Waits until they are. */
  readonly take: (bytes: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * Fetches what a URL holds that a caller gave us. Only public hosts are asked, and every redirect is checked as the
 * first URL was.
 * @param budget the answer's bytes are taken from it
 * @throws Unfetchable; FetchBusy when our own limits are the cause; or the signal's reason when the caller gave up
 */
export type PublicFetch = (url: string, budget: Budget, signal?: AbortSignal) => Promise<Buffer>;

/** Milliseconds for everything: names, connections, redirects, and all of the body. */
const WITHIN = 15_000;
/** A fetch that ran out of time after a longer wait for our own limits failed because of them, not of its host. */
const BLAMED_WAIT_MS = 1_000;
/** Milliseconds that a fetch waits for memory. */
const MEMORY_WAIT_MS = 5_000;
const REDIRECTS = 3;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  'user-agent': 'Sendwright',
  accept: '*/*',
  // Nobody asked for a compressed body: what it becomes has no bound that the bytes on the wire would keep.
  'accept-encoding': 'identity',
};

/**
 * @param within milliseconds that one fetch may take
 * @throws when a range in the settings is none
 */
export function makePublicFetch(settings: PublicFetchSettings, within = WITHIN): PublicFetch {
  const network = makeNetwork(settings);
  return async (text, budget, caller) => {
    const deadline = AbortSignal.timeout(within);
    const signal = caller ? AbortSignal.any([deadline, caller]) : deadline;
    const turn: Turn = { signal, holder: budget.holder, waitedMs: 0 };
    try {
      let url = publicUrl(text, network.allowed);
      for (let redirects = 0; redirects <= REDIRECTS; redirects++) {
        const answer = await ask(url, network, budget, turn);
        if (Buffer.isBuffer(answer)) return answer;
        url = publicUrl(answer.location, network.allowed, url);
      }
      throw new Unfetchable(`it redirects more than ${REDIRECTS} times`);
    } catch (error) {
      caller?.throwIfAborted();
      if (error instanceof FetchBusy) throw error;
      if (deadline.aborted && turn.waitedMs > BLAMED_WAIT_MS) throw new FetchBusy();
      if (deadline.aborted) throw new Unfetchable(`it takes longer than ${within / 1_000} seconds`);
      throw error instanceof Unfetchable ? error : new Unfetchable(reason(error), { cause: error });
    }
  };
}

/** One request. @returns the body, or where it redirects to */
async function ask(url: URL, network: Network, budget: Budget, turn: Turn): Promise<Buffer | { location: string }> {
  const client = await connectTo(url, network, turn);
  const { signal } = turn;
  try {
    const response = await client.request({ method: 'GET', path: url.pathname + url.search, headers: HEADERS, signal });
    const { location } = response.headers;
    if (REDIRECT_STATUSES.has(response.statusCode) && typeof location === 'string') return { location };
    return await read(response, budget, turn);
  } finally {
    client.destroy().catch(() => undefined);
  }
}

async function read(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  budget: Budget,
  turn: Turn,
): Promise<Buffer> {
  if (statusCode !== 200) throw new Unfetchable(`its server answers ${statusCode}`);
  if (isEncoded(headers)) throw new Unfetchable('its server sends it compressed, although it was asked not to');
  const tooLarge = () => new Unfetchable('it is larger than what may still be attached');
  if (Number(headers['content-length'] ?? 0) > budget.left) throw tooLarge();
  const chunks: Buffer[] = [];
  for await (const chunk of body as AsyncIterable<Buffer>) {
    budget.left -= chunk.length;
    if (budget.left < 0) throw tooLarge();
    const { memory } = budget;
    if (memory && !memory.tryTake(chunk.length)) {
      await waitFor(turn, MEMORY_WAIT_MS, (signal) => memory.take(chunk.length, signal));
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Whether a body is compressed, by the headers of its answer. */
export function isEncoded(headers: Dispatcher.ResponseData['headers']): boolean {
  const codings = [headers['content-encoding'], headers['transfer-encoding']].flat().join(',');
  return codings.split(',').some((coding) => !['', 'identity', 'chunked'].includes(coding.trim().toLowerCase()));
}

/** What went wrong on the wire, by the codes of Node and undici, or the name of an error that has none. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^(?:HTTPParserError|UND_ERR_HEADERS_OVERFLOW)$/, 'its server does not answer in HTTP'],
  [/^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/, 'the certificate of its server is not trusted'],
  [/^UND_ERR_(?:SOCKET|HEADERS_TIMEOUT|BODY_TIMEOUT)$|^ECONNRESET$|^EPIPE$/, 'its server breaks off'],
];

/** Why a request failed below HTTP, in words that tell nothing of our network. */
export function reason(error: unknown): string {
  const { code, name } = error as { code?: string; name?: string };
  return REASONS.find(([pattern]) => pattern.test(code ?? name ?? ''))?.[1] ?? 'its server cannot be reached';
}
