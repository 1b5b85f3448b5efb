import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { buildConnector, Client } from 'undici';
import { parseRanges, type Ranges } from '../domain/ip-ranges.ts';
import { mayReach } from './public-address.ts';
import { literalAddress, NOT_PUBLIC } from './public-url.ts';
import { Unfetchable } from './unfetchable.ts';

/** An address of a host, as `node:dns` gives it. */
export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

export interface PublicFetchSettings {
  /** Ranges of the operator's own network that may be reached after all, such as `10.1.0.0/16`. */
  readonly allowedCidrs: readonly string[];
  /** Finds the addresses of a host name; the system's resolver by default. */
  readonly resolve?: (hostname: string) => Promise<readonly HostAddress[]>;
}

/** What may be reached, and how names are resolved. */
export interface Network {
  readonly allowed: Ranges;
  /** Whether an address may be connected to. */
  readonly mayReach: typeof mayReach;
  readonly resolve: NonNullable<PublicFetchSettings['resolve']>;
}

/** @throws when a range is none */
export function makeNetwork({ allowedCidrs, resolve }: PublicFetchSettings): Network {
  const system = (hostname: string) => lookup(hostname, { all: true });
  return { allowed: parseRanges(allowedCidrs), mayReach, resolve: resolve ?? system };
}

/**
 * A client for one host that connects to addresses found and checked here and to no others: the name is resolved once,
 * and one private address among them refuses all. The caller destroys it.
 * @param url as `publicUrl` returned it
 * @throws Unfetchable
 */
export async function connectTo(url: URL, network: Network, signal: AbortSignal): Promise<Client> {
  return new Client(url.origin, { connect: await connectorTo(url, network, signal) });
}

/**
 * Makes connections for a client likewise.
 * @throws Unfetchable
 */
export async function connectorTo(url: URL, network: Network, signal: AbortSignal): Promise<buildConnector.connector> {
  const addresses = literalAddress(url) === undefined ? await resolved(url, network, signal) : [];
  // Never called for a host that is an address already; that one was checked with the URL.
  const pinned: LookupFunction = (_hostname, options, done) => {
    const [first] = addresses;
    if (options.all) done(null, [...addresses]);
    else if (first) done(null, first.address, first.family);
  };
  const connect = buildConnector({ lookup: pinned, timeout: 0, maxCachedSessions: 0 });
  return (options, done) => {
    connect(options, (...[error, socket]) => {
      if (error) done(error, null);
      // Whatever a resolver or a library did on the way: this is where the bytes would go.
      else if (network.mayReach(socket.remoteAddress ?? '', network.allowed)) done(null, socket);
      else {
        socket.destroy();
        done(new Unfetchable(NOT_PUBLIC), null);
      }
    });
  };
}

async function resolved({ hostname }: URL, network: Network, signal: AbortSignal): Promise<readonly HostAddress[]> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  signal.throwIfAborted();
  const addresses = await Promise.race([
    aborted,
    network.resolve(hostname).catch((error: unknown) => {
      throw new Unfetchable(NOT_PUBLIC, { cause: error });
    }),
  ]);
  if (addresses.length === 0 || !addresses.every(({ address }) => network.mayReach(address, network.allowed))) {
    throw new Unfetchable(NOT_PUBLIC);
  }
  return addresses;
}
