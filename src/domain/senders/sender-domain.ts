import { getPublicSuffix, parse } from 'tldts';

export const DOMAIN_STATUSES = ['pending', 'verified', 'failed'] as const;
/**
 * `pending`: nobody has proved yet that it is his. `verified`: its organization may send from it. `failed`: not proved in
 * time, lost since, or proved by somebody else; asking to verify it begins anew.
 */
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];

export const RECORD_KINDS = ['OWNERSHIP', 'DKIM', 'SPF', 'RETURN_PATH', 'DMARC'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

export const RECORD_STATUSES = ['pending', 'verified', 'failed'] as const;
/** `pending`: not asked for yet, or not there. `verified`: as it must be. `failed`: there, and wrong. */
export type RecordStatus = (typeof RECORD_STATUSES)[number];

/** A record that belongs into the DNS of a domain. */
export interface WantedRecord {
  readonly record: RecordKind;
  readonly type: 'TXT' | 'CNAME';
  /** In full, without a final dot. */
  readonly name: string;
  readonly value: string;
  /** Whether the domain is not verified without it; the others are advice. */
  readonly required: boolean;
  /** Whether Postmark must have seen it too. */
  readonly seenByProvider?: boolean;
}

/** What DNS answered about a record when it last answered. */
export interface Finding {
  /** Every value that was there, whole; null when nobody could be asked yet. */
  readonly found: string[] | null;
  readonly status: RecordStatus;
  /** A sentence that says what to change; null when nothing is wrong. */
  readonly error: string | null;
  /** Whether it has ever been right: only what was there can be lost. */
  readonly was_right: boolean;
}

/** By kind and name, since a domain may have several DKIM records. */
export type Findings = Readonly<Record<string, Finding>>;

export function findingKey({ record, name }: Pick<WantedRecord, 'record' | 'name'>): string {
  return `${record} ${name}`;
}

/** The longest name: what is written before it must fit too (RFC 1035 §2.3.4 allows 253 characters in all). */
export const DOMAIN_NAME_LENGTH = 220;

/** Why nobody can register a name, although it is a domain name; undefined when one can. @param name an A-label */
export function senderDomainProblem(name: string): string | undefined {
  if (name.length > DOMAIN_NAME_LENGTH) return `must be at most ${DOMAIN_NAME_LENGTH} characters`;
  const { publicSuffix, isIcann } = parse(name, { extractHostname: false });
  // Below an unknown top-level domain everything may be somebody's, and private suffixes are their companies'.
  if (isIcann && publicSuffix === name) return `${name} is a public suffix, below which everybody registers names`;
  return undefined;
}

/** The domain under which a registry gave a name away, whose DMARC policy covers the names below it. */
export function organizationalDomain(name: string): string {
  return parse(name, { extractHostname: false }).domain ?? getPublicSuffix(name) ?? name;
}

/** What a check came to. `unsure`: nothing is certainly wrong, but not all could be asked. */
export type Verdict = 'complete' | 'missing' | 'lost' | 'unsure';

/** Judges a domain by its required records. @param certain which of them were answered by this check */
export function verdictOf(wanted: readonly WantedRecord[], findings: Findings, certain: ReadonlySet<string>): Verdict {
  const required = wanted.filter((record) => record.required).map(findingKey);
  const wrong = required.filter((key) => certain.has(key) && findings[key]?.status !== 'verified');
  if (wrong.some((key) => findings[key]?.was_right)) return 'lost';
  if (wrong.length > 0) return 'missing';
  return required.every((key) => certain.has(key)) ? 'complete' : 'unsure';
}

/** Where a domain is on its way, by the database's clock. */
export interface Progress {
  readonly status: DomainStatus;
  readonly trusted: boolean;
  readonly tries: number;
  readonly misses: number;
  /** Milliseconds since it began to be tried. */
  readonly waited: number;
}

/** What follows from a check. */
export interface Step {
  readonly status: DomainStatus;
  readonly tries: number;
  readonly misses: number;
  /** Milliseconds until the next one; null when there is none, undefined when its time stays as it is. */
  readonly next: number | null | undefined;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LONGEST_WAIT = 6 * HOUR;
const GIVE_UP_AFTER = 72 * HOUR;
const DAILY = 24 * HOUR;
/** Until DNS is asked again that could not be asked. */
const SOON = HOUR;
const MISSES = 3;

/** @param isBackground whether nobody asked for this check: only those count for giving up */
export function nextStep(progress: Progress, verdict: Verdict, isBackground: boolean): Step {
  const { status, trusted, tries, misses, waited } = progress;
  if (trusted || status === 'failed') return { status, tries, misses, next: null };
  if (verdict === 'complete') {
    const next = status === 'verified' && !isBackground ? undefined : DAILY;
    return { status: 'verified', tries: 0, misses: 0, next };
  }
  if (!isBackground) return { status, tries, misses, next: undefined };
  if (status === 'verified') {
    if (verdict === 'unsure') return { status, tries, misses, next: SOON };
    const missed = verdict === 'lost' ? misses + 1 : 0;
    if (missed >= MISSES) return { status: 'failed', tries, misses: missed, next: null };
    return { status, tries, misses: missed, next: DAILY };
  }
  const left = GIVE_UP_AFTER - waited;
  if (left <= 0 && verdict !== 'unsure') return { status: 'failed', tries: tries + 1, misses, next: null };
  const backOff = Math.min(MINUTE * 2 ** Math.min(tries, 20), LONGEST_WAIT);
  return { status, tries: tries + 1, misses, next: left <= 0 ? SOON : Math.min(backOff, left) };
}
