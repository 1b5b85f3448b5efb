import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { cacheFor } from '../lib/cached.ts';
import { makeDeadline } from '../lib/deadline.ts';
import { isNotFound, queryDns } from '../lib/dns-query.ts';
import { isLocalhost, LOOPBACK } from './public-address.ts';

/** An address as `node:dns` returns it. */
export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a host name. Rejects if it has no address or the signal is aborted. */
export type ResolveHost = (hostname: string, signal: AbortSignal) => Promise<readonly HostAddress[]>;

/** Options of the resolver; the system's values are the defaults. */
export interface ResolverOptions {
  /** Addresses of DNS servers, with or without a port. */
  readonly servers?: readonly string[] | undefined;
  readonly hostsFile?: string | undefined;
  /** A resolv.conf file. The domains of its `search` line are appended to names that do not exist. */
  readonly resolvConf?: string | undefined;
  /** True to use the search list, which only names on the operator's network need. */
  readonly hasSearchList: boolean;
}

/** Deadline of all queries for one name. */
const LOOKUP_DEADLINE_MS = 5_000;
/** The cache lifetime of the system's files. */
const FILES_TTL_MS = 10_000;

/**
 * Resolves host names that customers choose. Sends DNS queries itself (c-ares) instead of calling `getaddrinfo`, as `dns.lookup`
 * does. `getaddrinfo` blocks one of libuv's four threads until the last name server has timed out, and cannot be canceled: a zone
 * whose servers never respond would stop every other lookup of the process. Here a lookup costs a socket and ends after 5 s. The
 * hosts file and `localhost` are handled as in `getaddrinfo`.
 */
export function makeResolver({ servers = [], hostsFile, resolvConf, hasSearchList }: ResolverOptions): ResolveHost {
  const readHosts = cacheFor(FILES_TTL_MS, async () => parseHosts(await read(hostsFile ?? '/etc/hosts')));
  const readSearch = cacheFor(FILES_TTL_MS, async () => parseSearch(await read(resolvConf ?? '/etc/resolv.conf')));

  return async (hostname, signal) => {
    const name = hostname.replace(/\.$/, '').toLowerCase();
    const fromFile = (await readHosts()).get(name);
    if (fromFile) return fromFile;
    if (isLocalhost(name)) return LOOPBACK;
    const suffixes = hasSearchList && name === hostname ? await readSearch() : [];
    const deadline = makeDeadline(LOOKUP_DEADLINE_MS, [signal]);
    for (const candidate of [name, ...suffixes.map((suffix) => `${name}.${suffix}`)]) {
      const addresses = await query(candidate, servers, deadline);
      if (addresses.length > 0) return addresses;
    }
    throw new Error('no such host');
  };
}

/** @returns an empty list if the name does not exist. Rejects if no server responds. */
function query(name: string, servers: readonly string[], signal: AbortSignal): Promise<readonly HostAddress[]> {
  return queryDns(servers, signal, async (resolver) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = [...addressesOf(v4, 4), ...addressesOf(v6, 6)];
    if (addresses.length === 0) for (const result of [v4, v6]) throwUnlessNotFound(result);
    return addresses;
  });
}

function addressesOf(result: PromiseSettledResult<string[]>, family: number): HostAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : [];
}

function throwUnlessNotFound(result: PromiseSettledResult<unknown>): void {
  if (result.status === 'rejected' && !isNotFound(result.reason)) throw result.reason as Error;
}

/** Parses lines that contain an address and its names (hosts(5)). */
function parseHosts(text: string): ReadonlyMap<string, readonly HostAddress[]> {
  const hosts = new Map<string, HostAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((each) => each.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }]);
    }
  }
  return hosts;
}

/** The last `search` or `domain` line applies (resolv.conf(5)). */
function parseSearch(text: string): readonly string[] {
  const lines = text.split('\n').flatMap((line) => /^\s*(?:search|domain)\s+(.+)$/.exec(line)?.[1] ?? []);
  return (lines.at(-1) ?? '').split(/\s+/).filter((domain) => domain !== '' && domain !== '.');
}

async function read(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}
