import { organizationalDomain } from './sender-domain.ts';
import type { ShownRecord } from './sender-records.ts';

/** Maximum length of a string in a TXT record, in bytes (RFC 1035 §3.3). A longer value is split. */
const STRING_BYTES = 255;

/** Formats records as lines of a zone file (RFC 1035 §5), with absolute names. */
export function zoneFile(records: readonly ShownRecord[]): string {
  return records
    .map(({ name, ttl, type, priority, value }) => {
      const data = type === 'TXT' ? quoted(value) : `${value}.`;
      return [`${name}.`, ttl, 'IN', type, priority, data].filter((part) => part !== null).join(' ');
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Quotes and splits a value. Records are ASCII, so characters are bytes. */
function quoted(value: string): string {
  const strings = value.match(new RegExp(`.{1,${STRING_BYTES}}`, 'gs')) ?? [''];
  return strings.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join(' ');
}

/** Returns the name of a domain's record as DNS providers show it within the zone: `@` for the zone itself. */
export function nameInZone(name: string, domain: string): { readonly zone: string; readonly name: string } {
  const zone = organizationalDomain(domain);
  return { zone, name: name === zone ? '@' : name.slice(0, -zone.length - 1) };
}
