import { type DnsAnswer, isMisplaced, judgeFound, judgeMissing } from '../domain/senders/record-judgement.ts';
import {
  type Finding,
  type Findings,
  findingKey,
  organizationalDomain,
  type WantedRecord,
} from '../domain/senders/sender-domain.ts';
import type { Dns } from '../providers/dns.ts';

/** DNS findings of a domain's records. */
interface RecordLookup {
  readonly findings: Findings;
  /** Keys of the records whose lookup succeeded. The findings of the others are unchanged. */
  readonly certain: ReadonlySet<string>;
}

/**
 * Looks up all records of a domain concurrently. A record whose lookup fails keeps its previous finding.
 * @param name the domain
 * @param before the stored findings
 */
export async function lookUpRecords(
  dns: Dns,
  name: string,
  wanted: readonly WantedRecord[],
  before: Findings,
): Promise<RecordLookup> {
  const certain = new Set<string>();
  const findings: Record<string, Finding> = {};
  await Promise.all(
    wanted.map(async (record) => {
      const key = findingKey(record);
      const old = before[key];
      const answer = await ask(dns, name, record);
      if (answer.kind === 'unknown') {
        findings[key] = old
          ? { ...old, error: old.error ?? lookupErrorOf(old, answer.reason) }
          : pendingFinding(answer.reason);
        return;
      }
      certain.add(key);
      const finding =
        answer.kind === 'found'
          ? judgeFound(record, answer.values)
          : judgeMissing(record, await findDoubledZone(dns, name, record));
      findings[key] = { ...finding, was_right: old?.was_right === true || finding.status === 'verified' };
    }),
  );
  return { findings, certain };
}

function lookupErrorOf({ status }: Finding, reason: string): string | null {
  return status === 'verified' ? null : lookupFailure(reason);
}

function pendingFinding(reason: string): Finding {
  return { found: null, status: 'pending', error: lookupFailure(reason), was_right: false };
}

function lookupFailure(reason: string): string {
  return `the DNS query failed: ${reason}; it will be retried`;
}

async function ask(dns: Dns, domain: string, { record, type, name }: WantedRecord): Promise<DnsAnswer> {
  if (type === 'CNAME') return dns.cname(name);
  if (record !== 'DMARC' || name === `_dmarc.${domain}`) return dns.txt(name);
  // A subdomain's own policy takes precedence over that of the registrable domain (RFC 7489 §6.6.3).
  const own = await dns.txt(`_dmarc.${domain}`);
  return own.kind === 'found' ? own : dns.txt(name);
}

/** Returns the zone if the record exists at a name with a doubled zone: many DNS providers append it to the entered name. */
async function findDoubledZone(dns: Dns, domain: string, record: WantedRecord): Promise<string | null> {
  const { type, name } = record;
  const zones = [...new Set([domain, organizationalDomain(domain)])].filter((zone) => name.endsWith(`.${zone}`));
  for (const zone of zones) {
    const at = `${name}.${zone}`;
    const answer = type === 'CNAME' ? await dns.cname(at) : await dns.txt(at);
    if (answer.kind === 'found' && isMisplaced(record, answer.values)) return zone;
  }
  return null;
}
