import { parse } from 'tldts';

export const DOMAIN_STATUSES = ['pending', 'verified', 'failed'] as const;
/**
 * `pending`: not verified yet. `verified`: its organization may send from it. `failed`: not verified in time, records were
 * removed, or another organization verified it; a new check starts over.
 */
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];

export const RECORD_KINDS = ['OWNERSHIP', 'DKIM', 'SPF', 'RETURN_PATH', 'DMARC'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

export const RECORD_STATUSES = ['pending', 'verified', 'failed'] as const;
/** `pending`: not checked yet, or missing. `verified`: correct. `failed`: present and wrong. */
export type RecordStatus = (typeof RECORD_STATUSES)[number];

/** A required or recommended DNS record of a domain. */
export interface WantedRecord {
  readonly record: RecordKind;
  readonly type: 'TXT' | 'CNAME';
  /** Fully qualified, without a final dot. */
  readonly name: string;
  readonly value: string;
  /** False for records that are only recommended. */
  readonly required: boolean;
  /** Postmark must also have confirmed it. */
  readonly seenByProvider?: boolean;
}

/** The latest DNS response for a record. */
export interface Finding {
  /** All values; null before the first response. */
  readonly found: string[] | null;
  readonly status: RecordStatus;
  /** A sentence with the required change; null for a correct record. */
  readonly error: string | null;
  /** True if it has ever been correct; only then can it be lost. */
  readonly was_right: boolean;
}

/** Findings by kind and name, since a domain may have several DKIM records. */
export type Findings = Readonly<Record<string, Finding>>;

export function findingKey({ record, name }: Pick<WantedRecord, 'record' | 'name'>): string {
  return `${record} ${name}`;
}

/** Leaves space for prefixes of records: RFC 1035 §2.3.4 limits a name to 253 characters. */
const DOMAIN_NAME_LENGTH = 220;

/** Returns why a domain name cannot be registered; undefined if it can. @param name an A-label */
export function senderDomainProblem(name: string): string | undefined {
  if (name.length > DOMAIN_NAME_LENGTH) return `must be at most ${DOMAIN_NAME_LENGTH} characters`;
  const { publicSuffix, isIcann } = parse(name, { extractHostname: false });
  // Anyone may own names below an unknown top-level domain. A private suffix belongs to its company.
  if (isIcann && publicSuffix === name) return `${name} is a public suffix, under which anyone can register names`;
  return undefined;
}

/**
 * Returns the registrable domain, whose DMARC policy covers the names below it. Companies also let others register names, such as
 * those below uk.com, so the private suffixes count (RFC 7489 §3.2). A suffix itself is its own domain.
 */
export function organizationalDomain(name: string): string {
  return parse(name, { extractHostname: false, allowPrivateDomains: true }).domain ?? name;
}

/** The result of a check. `unsure`: no record is certainly wrong, but some could not be looked up. */
export type Verdict = 'complete' | 'missing' | 'lost' | 'unsure';

/** Judges a domain by its required records. @param certain the records with a DNS response in this check */
export function verdictOf(wanted: readonly WantedRecord[], findings: Findings, certain: ReadonlySet<string>): Verdict {
  const required = wanted.filter((record) => record.required).map(findingKey);
  const wrong = required.filter((key) => certain.has(key) && findings[key]?.status !== 'verified');
  if (wrong.some((key) => findings[key]?.was_right)) return 'lost';
  if (wrong.length > 0) return 'missing';
  return required.every((key) => certain.has(key)) ? 'complete' : 'unsure';
}

/** The state of a domain, by the database's clock. */
export interface Progress {
  readonly status: DomainStatus;
  readonly trusted: boolean;
  readonly tries: number;
  readonly misses: number;
  /** Milliseconds since verification started. */
  readonly waitedMs: number;
}

/** The consequence of a check. */
export interface Step {
  readonly status: DomainStatus;
  readonly tries: number;
  readonly misses: number;
  /** Milliseconds until the next check; null for none, undefined when its time is unchanged. */
  readonly nextInMs: number | null | undefined;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MAX_BACK_OFF_MS = 6 * HOUR_MS;
const VERIFICATION_DEADLINE_MS = 72 * HOUR_MS;
const VERIFIED_CHECK_INTERVAL_MS = 24 * HOUR_MS;
/** Delay of the next check after failed lookups. */
const UNSURE_RETRY_MS = HOUR_MS;
const MAX_MISSES = 3;

/** @param isBackground false for a check on request: only background checks count towards giving up */
export function nextStep(progress: Progress, verdict: Verdict, isBackground: boolean): Step {
  const { status, trusted, tries, misses, waitedMs } = progress;
  if (trusted || status === 'failed') return { status, tries, misses, nextInMs: null };
  if (verdict === 'complete') {
    const nextInMs = status === 'verified' && !isBackground ? undefined : VERIFIED_CHECK_INTERVAL_MS;
    return { status: 'verified', tries: 0, misses: 0, nextInMs };
  }
  if (!isBackground) return { status, tries, misses, nextInMs: undefined };
  if (status === 'verified') {
    if (verdict === 'unsure') return { status, tries, misses, nextInMs: UNSURE_RETRY_MS };
    const missed = verdict === 'lost' ? misses + 1 : 0;
    if (missed >= MAX_MISSES) return { status: 'failed', tries, misses: missed, nextInMs: null };
    return { status, tries, misses: missed, nextInMs: VERIFIED_CHECK_INTERVAL_MS };
  }
  const remainingMs = VERIFICATION_DEADLINE_MS - waitedMs;
  if (remainingMs <= 0 && verdict !== 'unsure') return { status: 'failed', tries: tries + 1, misses, nextInMs: null };
  const backOff = Math.min(MINUTE_MS * 2 ** Math.min(tries, 20), MAX_BACK_OFF_MS);
  return {
    status,
    tries: tries + 1,
    misses,
    nextInMs: remainingMs <= 0 ? UNSURE_RETRY_MS : Math.min(backOff, remainingMs),
  };
}
