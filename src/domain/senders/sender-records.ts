import { DKIM_SELECTOR, dkimValue } from './dkim.ts';
import {
  type Findings,
  findingKey,
  organizationalDomain,
  type RecordKind,
  type RecordStatus,
  type WantedRecord,
} from './sender-domain.ts';

/** The configured providers, which determine DNS records. */
export interface Senders {
  /** True if email is handed to Postmark. */
  readonly postmark: boolean;
  /** The SMTP server for email that we sign; null without one. */
  readonly smtpHost: string | null;
}

/** Postmark's required records, and those that it has confirmed. */
export interface ProviderRecords {
  readonly dkim: { readonly name: string; readonly value: string; readonly seen: boolean } | null;
  readonly return_path: { readonly name: string; readonly value: string; readonly seen: boolean } | null;
}

/** The data from which a domain's records are derived. */
interface RecordSource {
  readonly name: string;
  readonly token: string;
  /** The public part of our own key; null without one. */
  readonly dkim_public: string | null;
  readonly provider: ProviderRecords | null;
}

/** A record as the API returns it. */
export interface ShownRecord {
  readonly record: RecordKind;
  readonly type: 'TXT' | 'CNAME';
  readonly name: string;
  readonly value: string;
  readonly priority: number | null;
  readonly ttl: number;
  readonly required: boolean;
  readonly status: RecordStatus;
  readonly found: string[] | null;
  readonly error: string | null;
}

/** Short enough that a correction takes effect soon, and supported by every DNS provider. */
const TTL_SECONDS = 3_600;
/** https://postmarkapp.com/support/article/1092-how-do-i-set-up-spf-for-postmark */
const POSTMARK_SPF = 'include:spf.mtasv.net';

/** Returns all DNS records of a domain, the required ones first. */
export function wantedRecords(source: RecordSource, senders: Senders): WantedRecord[] {
  const { name, token, dkim_public: publicKey, provider } = source;
  const txt = (record: RecordKind, at: string, value: string, required = false): WantedRecord => {
    return { record, type: 'TXT', name: at, value, required };
  };
  const { dkim, return_path: returnPath } = provider ?? {};
  return [
    txt('OWNERSHIP', ownershipName(name), `sendwright-verification=${token}`, true),
    ...(dkim ? [{ ...txt('DKIM', dkim.name, dkim.value, true), seenByProvider: dkim.seen }] : []),
    ...(publicKey === null ? [] : [txt('DKIM', ownDkimName(name), dkimValue(publicKey), true)]),
    ...(returnPath
      ? [
          {
            record: 'RETURN_PATH',
            type: 'CNAME',
            name: returnPath.name,
            value: returnPath.value,
            required: false,
            seenByProvider: returnPath.seen,
          } as const,
        ]
      : []),
    txt('SPF', name, `v=spf1 ${mechanisms(senders)}~all`),
    txt('DMARC', `_dmarc.${organizationalDomain(name)}`, 'v=DMARC1; p=none;'),
  ];
}

/** Returns the name at which a domain's ownership is proved. */
export function ownershipName(name: string): string {
  return `_sendwright.${name}`;
}

/** Returns the name at which our own DKIM key is published. */
export function ownDkimName(name: string): string {
  return `${DKIM_SELECTOR}._domainkey.${name}`;
}

/** Returns the SPF mechanisms of the outgoing servers. */
function mechanisms({ postmark, smtpHost }: Senders): string {
  const smtp = smtpHost === null ? [] : [/^[\d.]+$/.test(smtpHost) ? `ip4:${smtpHost}` : `a:${smtpHost}`];
  // An IPv6 address needs another mechanism, which is not supported.
  const named = smtp.filter((each) => !each.includes('[')).concat(postmark ? [POSTMARK_SPF] : []);
  return named.map((each) => `${each} `).join('');
}

/** Combines wanted records with their findings. */
export function showRecords(wanted: readonly WantedRecord[], findings: Findings): ShownRecord[] {
  return wanted.map(({ record, type, name, value, required }) => {
    const { status, found, error } = findings[findingKey({ record, name })] ?? NOT_ASKED;
    return { record, type, name, value, priority: null, ttl: TTL_SECONDS, required, status, found, error };
  });
}

const NOT_ASKED = { status: 'pending', found: null, error: null } as const;
