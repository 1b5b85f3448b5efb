import type { Resolver } from 'node:dns/promises';
import type { DnsAnswer } from '../domain/senders/record-judgement.ts';
import { isNotFound, queryDns } from '../lib/dns-query.ts';

/** Queries DNS. Never rejects: a failed query and a missing record are different results. */
export interface Dns {
  /** The TXT records of a name, the parts of each joined (RFC 7208 §3.3). */
  readonly txt: (name: string) => Promise<DnsAnswer>;
  readonly cname: (name: string) => Promise<DnsAnswer>;
}

/** Deadline of all queries for one name. */
const LOOKUP_DEADLINE_MS = 5_000;

const REASONS: Readonly<Record<string, string>> = {
  ESERVFAIL: 'the name servers of the domain fail',
  EREFUSED: 'the name servers refuse to answer',
  ETIMEOUT: 'no answer in time',
  ECANCELLED: 'no answer in time',
};

/** @param servers addresses with or without a port, in the order of preference; empty for those of the system */
export function makeDns(servers: readonly string[] = [], deadlineMs = LOOKUP_DEADLINE_MS): Dns {
  async function ask(query: (resolver: Resolver) => Promise<string[]>): Promise<DnsAnswer> {
    try {
      const values = await queryDns(servers, AbortSignal.timeout(deadlineMs), query);
      return values.length > 0 ? { kind: 'found', values } : { kind: 'none' };
    } catch (error) {
      if (isNotFound(error)) return { kind: 'none' };
      const { code = '' } = error as NodeJS.ErrnoException;
      return { kind: 'unknown', reason: REASONS[code] ?? 'DNS cannot be reached' };
    }
  }
  return {
    txt: (name) => ask(async (resolver) => (await resolver.resolveTxt(name)).map(joinParts)),
    cname: (name) => ask((resolver) => resolver.resolveCname(name)),
  };
}

/** Node reads each byte as a character, while people write UTF-8. */
function joinParts(parts: readonly string[]): string {
  return Buffer.from(parts.join(''), 'latin1').toString();
}
