import { Resolver } from 'node:dns/promises';

/** Timeout of the first query to a server; c-ares doubles it for later ones. */
const FIRST_QUERY_TIMEOUT_MS = 1_500;
const MAX_QUERIES_PER_SERVER = 2;

const NOT_FOUND: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA']);

/** Returns true if a name does not exist (NXDOMAIN), or has no record of the type (NODATA). */
export function isNotFound(error: unknown): boolean {
  return NOT_FOUND.has((error as NodeJS.ErrnoException).code);
}

/**
 * Runs the DNS queries for one name until the signal is aborted.
 * @param servers addresses with or without a port, in the order of preference; empty for those of the system
 */
export async function queryDns<T>(
  servers: readonly string[],
  signal: AbortSignal,
  query: (resolver: Resolver) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  // Canceling affects all queries of a resolver, so each name has its own.
  const resolver = new Resolver({ timeout: FIRST_QUERY_TIMEOUT_MS, tries: MAX_QUERIES_PER_SERVER });
  if (servers.length > 0) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await query(resolver);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
