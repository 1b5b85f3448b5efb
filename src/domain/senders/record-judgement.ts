import { type Finding, type RecordStatus, type WantedRecord } from './sender-domain.ts';

/** The DNS response for a name. */
export type DnsAnswer =
  /** All values of the name, each joined from its strings, in any order. */
  | { readonly kind: 'found'; readonly values: readonly string[] }
  /** The name does not exist, or has no record of this type. */
  | { readonly kind: 'none' }
  /** No server responded; the record's state is unknown. */
  | { readonly kind: 'unknown'; readonly reason: string };

type RecordFinding = Omit<Finding, 'was_right'>;

/** Limits on the stored values of a name, which others control. */
const MAX_VALUES = 20;
const VALUE_LENGTH = 1_000;

/** Sanitizes values: limits their number, truncates them, and replaces control characters and lone surrogates. */
function sanitize(values: readonly string[]): string[] {
  const cut = (value: string) =>
    Array.from(value.slice(0, 2 * VALUE_LENGTH))
      .slice(0, VALUE_LENGTH)
      .join('');
  // eslint-disable-next-line no-control-regex -- control characters are replaced on purpose
  return values.slice(0, MAX_VALUES).map((value) => cut(value).replace(/[\0-\x1F\x7F\uD800-\uDFFF]/gu, '�'));
}

/**
 * Compares the records in DNS with a wanted record.
 * @param values all values of the record's type at the name, at least one
 */
export function judgeFound(wanted: WantedRecord, values: readonly string[]): RecordFinding {
  const about = wanted.record === 'SPF' ? values.filter((value) => SPF.test(value)) : values;
  const error = JUDGES[wanted.record](wanted, about);
  const status: RecordStatus = error === null ? 'verified' : NOT_YET.has(error) ? 'pending' : 'failed';
  return { found: sanitize(about), status, error };
}

/**
 * Returns true if values at another name are those of a wanted record, and not of a wildcard record. Any SPF record is valid for a
 * domain, so only the wanted one counts.
 */
export function isMisplaced(wanted: WantedRecord, values: readonly string[]): boolean {
  if (wanted.record === 'SPF') return values.includes(wanted.value);
  return judgeFound({ ...wanted, seenByProvider: true }, values).status === 'verified';
}

/** Judges a missing record. @param zone the zone that the DNS provider appended again; null otherwise */
export function judgeMissing({ record, name }: WantedRecord, zone: string | null): RecordFinding {
  if (zone === null) return { found: [], status: 'pending', error: MISSING[record] };
  const host = name.slice(0, -zone.length - 1);
  const error = `it was found at ${name}.${zone}: the DNS provider added the domain itself; enter only ${host} as the name`;
  return { found: [], status: 'failed', error };
}

const SPF = /^\s*"?v=spf1(?:\s|"|$)/i;
const NOTHING_OF_OURS = 'there are other TXT records at this name, but not this one yet';

const MISSING: Readonly<Record<WantedRecord['record'], string>> = {
  OWNERSHIP: 'there is no such record yet',
  DKIM: 'there is no such record yet',
  RETURN_PATH: 'there is no such record yet; without it bounces go to an address of the provider’s domain',
  SPF: 'there is no SPF record; many receivers trust email less without one',
  DMARC: 'there is no DMARC record; the large mailbox providers ask for one',
};

const NOT_SEEN = 'the record exists, but Postmark has not found it yet';
const NOT_YET: ReadonlySet<string> = new Set([NOTHING_OF_OURS, NOT_SEEN, ...Object.values(MISSING)]);

type Judge = (wanted: WantedRecord, values: readonly string[]) => string | null;

const JUDGES: Readonly<Record<WantedRecord['record'], Judge>> = {
  OWNERSHIP: ownership,
  DKIM: dkim,
  RETURN_PATH: returnPath,
  SPF: spf,
  DMARC: dmarc,
};

/** True if the stored value contains quotes, which some DNS providers store and others require. */
function isQuoted(value: string): boolean {
  return /^\s*\\?".*"\s*$/s.test(value);
}

function ownership({ value: wanted }: WantedRecord, values: readonly string[]): string | null {
  const trimmed = values.map((value) => value.trim());
  if (trimmed.includes(wanted)) return null;
  const [prefix] = wanted.split('=', 1);
  const ours = trimmed.find((value) => value.includes(`${prefix}=`));
  if (ours === undefined) return NOTHING_OF_OURS;
  if (isQuoted(ours)) return 'the value is written in quotes; enter it without them';
  if (wanted.startsWith(ours)) return `the value is cut off after ${ours.length} characters`;
  return 'the value is another one, perhaps of an earlier registration or of another account; replace it';
}

/** Parses the tags of a DKIM or DMARC record; removes white space from values (RFC 6376 §3.2). */
function tagsOf(value: string): Map<string, string> {
  const parts = value.split(';').map((part) => part.split('='));
  return new Map(parts.map(([name = '', ...rest]) => [name.trim().toLowerCase(), rest.join('=').replace(/\s+/g, '')]));
}

function dkim({ value, seenByProvider }: WantedRecord, values: readonly string[]): string | null {
  const keys = values.filter((each) => tagsOf(each).has('p'));
  if (keys.length > 1) return 'there are two DKIM records at this name; receivers may read either: keep one';
  const wanted = tagsOf(value).get('p') ?? '';
  const [key] = keys;
  if (key === undefined) {
    return values.some(isQuoted) ? 'the value is written in quotes; enter it without them' : NOTHING_OF_OURS;
  }
  if (isQuoted(key)) return 'the value is written in quotes; enter it without them';
  const published = (tagsOf(key).get('p') ?? '').replace(/"/g, '');
  if (published === '') return 'the key is empty, which revokes it; enter the whole value';
  if (published !== wanted) {
    if (!wanted.startsWith(published)) return 'the key is another one; replace the value';
    return `the value is cut off at ${key.length} characters; enter the whole value, in several parts of up to 255 characters if necessary`;
  }
  if (key.includes('"')) return 'the value contains quotes between its parts; enter it without them';
  return seenByProvider === false ? NOT_SEEN : null;
}

function returnPath({ value, seenByProvider }: WantedRecord, values: readonly string[]): string | null {
  const bare = (name: string) => name.toLowerCase().replace(/\.$/, '');
  if (!values.some((each) => bare(each) === bare(value)))
    return `it points to ${sanitize(values)[0]}; it must point to ${value}`;
  return seenByProvider === false ? NOT_SEEN : null;
}

function spf(_wanted: WantedRecord, [record, second]: readonly string[]): string | null {
  if (record === undefined) return MISSING.SPF;
  if (second !== undefined) return 'there are two SPF records, and receivers ignore both; combine them into one';
  if (isQuoted(record)) return 'the value is written in quotes; enter it without them';
  if (/(?:^|\s)\+?all(?:\s|$)/i.test(record))
    return 'it ends in +all, which lets any server send as this domain; use ~all';
  return null;
}

function dmarc(_wanted: WantedRecord, values: readonly string[]): string | null {
  const records = values.filter((value) => /^\s*"?v\s*=\s*DMARC1/i.test(value));
  const [record, second] = records;
  if (record === undefined) return MISSING.DMARC;
  if (second !== undefined) return 'there are two DMARC records, and receivers ignore both; keep one';
  if (isQuoted(record)) return 'the value is written in quotes; enter it without them';
  if (!/^(?:none|quarantine|reject)$/i.test(tagsOf(record).get('p') ?? '')) {
    return 'it names no policy; add p=none, p=quarantine or p=reject';
  }
  return null;
}
