import type { LookupFunction } from 'node:net';
import { buildConnector, Client } from 'undici';
import { makeDeadline } from '../lib/deadline.ts';
import { type Semaphore, makeSemaphore } from '../lib/semaphore.ts';
import { parseRanges, type Ranges } from '../lib/ip-ranges.ts';
import { untilAborted } from '../lib/until-aborted.ts';
import { mayReach } from './public-address.ts';
import { literalAddress, NOT_PUBLIC } from './public-url.ts';
import { type HostAddress, makeResolver, type ResolveHost, type ResolverOptions } from './resolve.ts';
import { FetchBusy, Unfetchable } from './unfetchable.ts';

/** The maximum number of concurrent lookups of one process: at least one for each endpoint that a webhook worker serves. */
const MAX_LOOKUPS = 512;
/** A file can be fetched from many hosts, but an endpoint has one lookup at a time and needs no share. */
const MAX_LOOKUPS_PER_ORGANIZATION = 4;
/** The maximum time that a request waits for a lookup slot. */
const LOOKUP_WAIT_MS = 5_000;

export interface PublicFetchSettings {
  /** Ranges of the operator's network that are allowed, such as `10.1.0.0/16`. */
  readonly allowedCidrs: readonly string[];
  /** Finds the addresses of a host name; DNS and the hosts file by default. */
  readonly resolve?: ResolveHost;
  readonly resolver?: Omit<ResolverOptions, 'hasSearchList'>;
}

/** One request, with the time that it has waited for our own limits. */
export interface Turn {
  readonly signal: AbortSignal;
  /** The organization whose share of the lookups it uses; undefined without a share. */
  readonly holder: string | undefined;
  /** Milliseconds spent waiting for our limits. */
  waitedMs: number;
}

/** The allowed addresses and the resolver. */
export interface Network {
  readonly allowed: Ranges;
  /** Returns true if a connection to an address is allowed. */
  readonly mayReach: typeof mayReach;
  readonly resolve: ResolveHost;
  readonly lookups: Semaphore;
  readonly connectTimeoutMs: number;
}

/**
 * @param connectTimeoutMs time for one connection with its TLS handshake
 * @throws if a range is not valid
 */
export function makeNetwork(
  { allowedCidrs, resolve, resolver }: PublicFetchSettings,
  connectTimeoutMs: number,
): Network {
  const allowed = parseRanges(allowedCidrs);
  return {
    allowed,
    mayReach,
    resolve: resolve ?? makeResolver({ ...resolver, hasSearchList: allowed.length > 0 }),
    lookups: makeSemaphore(MAX_LOOKUPS, MAX_LOOKUPS_PER_ORGANIZATION),
    connectTimeoutMs,
  };
}

/**
 * Creates a client for one host that connects only to addresses that were resolved and checked here. The name is resolved once. A
 * single private address among the results makes the host unfetchable. The caller destroys the client.
 * @param url the result of `parseFetchableUrl`
 * @throws Unfetchable
 */
export async function connectTo(url: URL, network: Network, turn: Turn): Promise<Client> {
  return new Client(url.origin, { connect: await connectorTo(url, network, turn) });
}

/**
 * Creates an undici connector with the same checks.
 * @throws Unfetchable
 */
export async function connectorTo(url: URL, network: Network, turn: Turn): Promise<buildConnector.connector> {
  const addresses = literalAddress(url) === undefined ? await resolveAddresses(url, network, turn) : [];
  // undici does not call it for a literal address, which was checked with the URL.
  const pinned: LookupFunction = (_hostname, options, done) => {
    const [first] = addresses;
    if (options.all) done(null, [...addresses]);
    else if (first) done(null, first.address, first.family);
  };
  // The timeout is needed: undici closes a socket that is still connecting neither when the request is aborted nor when the client is
  // destroyed.
  const connect = buildConnector({ lookup: pinned, timeout: network.connectTimeoutMs, maxCachedSessions: 0 });
  return (options, done) => {
    connect(options, (...[error, socket]) => {
      if (error) done(error, null);
      // The last check is independent of resolvers and libraries: it uses the address of the connected socket, which is undefined
      // if the peer has already reset the connection.
      else if (network.mayReach(socket.remoteAddress ?? '', network.allowed)) done(null, socket);
      else {
        socket.destroy();
        done(new Unfetchable(NOT_PUBLIC), null);
      }
    });
  };
}

async function resolveAddresses({ hostname }: URL, network: Network, turn: Turn): Promise<readonly HostAddress[]> {
  const { signal, holder } = turn;
  const release = await waitFor(turn, LOOKUP_WAIT_MS, (waiting) =>
    network.lookups.take(1, { signal: waiting, holder }),
  );
  const resolving = network
    .resolve(hostname, signal)
    .finally(release)
    .catch((error: unknown) => {
      throw new Unfetchable(NOT_PUBLIC, { cause: error });
    });
  const addresses = await untilAborted(resolving, signal);
  if (addresses.length === 0 || !addresses.every(({ address }) => network.mayReach(address, network.allowed))) {
    throw new Unfetchable(NOT_PUBLIC);
  }
  return addresses;
}

/**
 * Waits for a slot or memory, and adds the waiting time to the turn.
 * @throws FetchBusy if the wait exceeds `withinMs` or the request is aborted meanwhile
 */
export async function waitFor<T>(turn: Turn, withinMs: number, take: (signal: AbortSignal) => Promise<T>): Promise<T> {
  turn.signal.throwIfAborted();
  const began = performance.now();
  try {
    return await take(makeDeadline(withinMs, [turn.signal]));
  } catch {
    throw new FetchBusy();
  } finally {
    turn.waitedMs += performance.now() - began;
  }
}
