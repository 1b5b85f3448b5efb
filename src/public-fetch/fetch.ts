import type { Dispatcher } from 'undici';
import type { Release, Semaphore } from '../lib/semaphore.ts';
import { untilAborted } from '../lib/until-aborted.ts';
import { connectTo, makeNetwork, type Network, type PublicFetchSettings, type Turn, waitFor } from './connect.ts';
import { parseFetchableUrl } from './public-url.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** The bytes that may still be fetched. Several fetches may share a budget. */
export interface Budget {
  left: number;
  /** The organization that the fetch is for. */
  readonly holder?: string;
  readonly memory?: FetchMemory;
}

/** Reserves memory for fetched bytes; the caller of the fetch releases it. */
interface FetchMemory {
  /** @returns true if the memory was reserved */
  readonly tryTake: (bytes: number) => boolean;
  /** Waits until the memory is reserved. */
  readonly take: (bytes: number, signal: AbortSignal) => Promise<unknown>;
}

/**
 * Opens a budget of `left` bytes. Fetched bytes take permits of `memory`, one per byte, which count against `holder`.
 * @returns `release`, which returns the permits that were taken
 */
export function openBudget(memory: Semaphore, holder: string, left: number): { budget: Budget; release: Release } {
  const releases: Release[] = [];
  const budget: Budget = {
    left,
    holder,
    memory: {
      tryTake: (bytes) => {
        const release = memory.tryTake(bytes, holder);
        if (release) releases.push(release);
        return release !== undefined;
      },
      take: async (bytes, signal) => releases.push(await memory.take(bytes, { signal, holder })),
    },
  };
  return { budget, release: () => releases.forEach((release) => release()) };
}

/**
 * Fetches a URL that a customer has chosen. Only public hosts and the operator's allowed ranges are contacted, and every redirect
 * is checked like the first URL.
 * @param budget the response's bytes are subtracted from it
 * @param authorization sent only to the origin of the URL, not to another origin that it redirects to
 * @throws Unfetchable; FetchBusy if our own limits are the cause; or the signal's reason if the caller aborted
 */
export type PublicFetch = (
  url: string,
  budget: Budget,
  signal?: AbortSignal,
  authorization?: string,
) => Promise<Buffer>;

/** The deadline of a fetch: lookups, connections, redirects and the whole body. */
const FETCH_DEADLINE_MS = 15_000;
/** If a fetch times out after waiting longer than this for our own limits, these are the cause, not its host. */
const BLAMED_WAIT_MS = 1_000;
/** The maximum time that a fetch waits for memory. */
const MEMORY_WAIT_MS = 5_000;
const MAX_REDIRECTS = 3;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  'user-agent': 'Sendwright',
  accept: '*/*',
  // Compressed bodies are refused: their decompressed size is not bounded by the transferred bytes.
  'accept-encoding': 'identity',
};

/**
 * @param deadlineMs time for one fetch
 * @throws when a range in the settings is not valid
 */
export function makePublicFetch(settings: PublicFetchSettings, deadlineMs = FETCH_DEADLINE_MS): PublicFetch {
  const network = makeNetwork(settings, deadlineMs);
  return async (text, budget, caller, authorization) => {
    const deadline = AbortSignal.timeout(deadlineMs);
    const signal = caller ? AbortSignal.any([deadline, caller]) : deadline;
    const turn: Turn = { signal, holder: budget.holder, waitedMs: 0 };
    try {
      let url = parseFetchableUrl(text, network.allowed);
      const { origin } = url;
      for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
        const headers = authorization !== undefined && url.origin === origin ? { ...HEADERS, authorization } : HEADERS;
        const answer = await ask(url, headers, network, budget, turn);
        if (Buffer.isBuffer(answer)) return answer;
        url = parseFetchableUrl(answer.location, network.allowed, url);
      }
      throw new Unfetchable(`it redirects more than ${MAX_REDIRECTS} times`);
    } catch (error) {
      caller?.throwIfAborted();
      if (error instanceof FetchBusy) throw error;
      if (deadline.aborted && turn.waitedMs > BLAMED_WAIT_MS) throw new FetchBusy();
      if (deadline.aborted) throw new Unfetchable(`it takes longer than ${deadlineMs / 1_000} seconds`);
      throw error instanceof Unfetchable ? error : new Unfetchable(reason(error), { cause: error });
    }
  };
}

/** Sends one request. @returns the body, or the target of a redirect */
async function ask(
  url: URL,
  headers: Readonly<Record<string, string>>,
  network: Network,
  budget: Budget,
  turn: Turn,
): Promise<Buffer | { location: string }> {
  const client = await connectTo(url, network, turn);
  const { signal } = turn;
  try {
    const requesting = client.request({ method: 'GET', path: url.pathname + url.search, headers, signal });
    // undici ignores the signal until it has connected.
    const response = await untilAborted(requesting, signal);
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

/** Returns true if the headers of a response declare a compressed body. */
export function isEncoded(headers: Dispatcher.ResponseData['headers']): boolean {
  const encodings = [headers['content-encoding'], headers['transfer-encoding']]
    .flat()
    .filter((value) => value !== undefined);
  const codings = encodings.flatMap((value) => value.split(','));
  return codings.some((coding) => !['', 'identity', 'chunked'].includes(coding.trim().toLowerCase()));
}

/** Maps error codes of Node and undici, or the name of an error without a code, to messages. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^(?:HTTPParserError|UND_ERR_HEADERS_OVERFLOW)$/, 'its server does not answer in HTTP'],
  [/^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/, 'the certificate of its server is not trusted'],
  [/^UND_ERR_(?:SOCKET|HEADERS_TIMEOUT|BODY_TIMEOUT)$|^ECONNRESET$|^EPIPE$/, 'its server breaks off'],
];

/** Returns why a request failed below HTTP, without details of our network. */
export function reason(error: unknown): string {
  const { code, name } = error as { code?: string; name?: string };
  return REASONS.find(([pattern]) => pattern.test(code ?? name ?? ''))?.[1] ?? 'its server cannot be reached';
}
