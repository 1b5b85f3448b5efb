import { isIP } from 'node:net';
import type { Ranges } from '../lib/ip-ranges.ts';
import { mayReach } from './public-address.ts';
import { Unfetchable } from './unfetchable.ts';

/** Ports of services other than web servers. Requests of customers must not reach them through us. */
const REFUSED_PORTS = new Set(
  [
    // Mail.
    [24, 25, 109, 110, 143, 465, 587, 993, 995, 2525, 4190],
    // Databases and caches.
    [1433, 1434, 1521, 3050, 3306, 5432, 5433, 6379, 6380, 6432, 7199, 7687, 9042, 9160, 11211, 26257, 28015, 33060],
    [27017, 27018, 27019, 50000],
    // Temporal: front end, history, matching, worker, their membership ports, web UI.
    [7233, 7234, 7235, 7239, 6933, 6934, 6935, 6939, 8233],
  ].flat(),
);

/** One message for all hosts, so that it does not reveal internal names and addresses. */
export const NOT_PUBLIC = 'its host cannot be found on the public internet';

/**
 * Parses a URL that may be fetched: http or https, no refused port and no internal address. Removes the user name, password and
 * fragment.
 * @param base resolves a relative URL
 * @throws Unfetchable
 */
export function parseFetchableUrl(text: string, allowed: Ranges, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new Unfetchable('it is not a URL');
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Unfetchable('it is not an http or https URL');
  if (REFUSED_PORTS.has(Number(url.port))) throw new Unfetchable(`its port ${url.port} is not one of web servers`);
  const address = literalAddress(url);
  if (address !== undefined && !mayReach(address, allowed)) throw new Unfetchable(NOT_PUBLIC);
  url.username = '';
  url.password = '';
  url.hash = '';
  return url;
}

/** Returns a URL's literal IP address without brackets; undefined if it has a host name. */
export function literalAddress({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return isIP(bare) ? bare : undefined;
}
