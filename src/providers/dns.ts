import { Resolver } from 'node:dns/promises';
import type { DnsAnswer } from '../domain/senders/record-judgement.ts';

/** Queries DNS. Never rejects: a failed query and a missing record are different results. */
export interface Dns {
  /** The TXT records of a name, the parts of each joined (RFC 7208 §3.3). */
  readonly txt: (name: string) => Promise<DnsAnswer>;
  readonly cname: (name: string) => Promise<DnsAnswer>;
}

/** Milliseconds that one name may take in all. */
const WITHIN = 5_000;
/** Milliseconds for a server's first chance; each further one is longer. */
const FIRST_TRY = 1_500;
const TRIES = 2;

/** The name is not there (NXDOMAIN), or has nothing of this type (NODATA). */
const NOT_THERE: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA']);
const REASONS: Readonly<Record<string, string>> = {
  ESERVFAIL: 'the name servers of the domain fail',
  EREFUSED: 'the name servers refuse to answer',
  ETIMEOUT: 'no answer in time',
  ECANCELLED: 'no answer in time',
};

/** @param servers addresses with or without a port, asked in their order; none are the system's */
export function makeDns(servers: readonly string[] = [], within = WITHIN): Dns {
  async function ask(look: (resolver: Resolver) => Promise<string[]>): Promise<DnsAnswer> {
    // One resolver per name, since canceling affects all its queries.
    const resolver = new Resolver({ timeout: Math.min(FIRST_TRY, within), tries: TRIES });
    if (servers.length > 0) resolver.setServers(servers);
    const timer = setTimeout(() => resolver.cancel(), within);
    try {
      const values = await look(resolver);
      return values.length > 0 ? { kind: 'found', values } : { kind: 'none' };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (NOT_THERE.has(code)) return { kind: 'none' };
      return { kind: 'unknown', reason: REASONS[code ?? ''] ?? 'DNS cannot be reached' };
    } finally {
      clearTimeout(timer);
    }
  }
  return {
    txt: (name) => ask(async (resolver) => (await resolver.resolveTxt(name)).map(joined)),
    cname: (name) => ask((resolver) => resolver.resolveCname(name)),
  };
}

/** Node reads each byte as a character, while people write UTF-8. */
function joined(parts: readonly string[]): string {
  return Buffer.from(parts.join(''), 'latin1').toString();
}
