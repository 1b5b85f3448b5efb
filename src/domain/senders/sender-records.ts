import { DKIM_SELECTOR, dkimValue } from './dkim.ts';
import {
  type Findings,
  findingKey,
  organizationalDomain,
  type RecordKind,
  type RecordStatus,
  type WantedRecord,
} from './sender-domain.ts';

/** How email leaves here, as far as domains are concerned. */
export interface Senders {
  /** Whether email is handed to Postmark. */
  readonly postmark: boolean;
  /** The SMTP server that email is handed to, which we sign; null when there is none. */
  readonly smtpHost: string | null;
}

/** What Postmark wants of a domain, and what of it Postmark has seen. */
export interface ProviderRecords {
  readonly dkim: { readonly name: string; readonly value: string; readonly seen: boolean } | null;
  readonly return_path: { readonly name: string; readonly value: string; readonly seen: boolean } | null;
}

/** What the records of a domain are made of. */
export interface RecordSource {
  readonly name: string;
  readonly token: string;
  /** Of our own key; null when it has none. */
  readonly dkim_public: string | null;
  readonly provider: ProviderRecords | null;
}

/** A record as the API shows it. */
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

/** Seconds. Short enough to mend a mistake, long enough for every DNS provider. */
const TTL = 3_600;
/** https://postmarkapp.com/support/article/1092-how-do-i-set-up-spf-for-postmark */
const POSTMARK_SPF = 'include:spf.mtasv.net';

/** All records that belong into the DNS of a domain, the required ones first. */
export function wantedRecords(source: RecordSource, senders: Senders): WantedRecord[] {
  const { name, token, dkim_public: publicKey, provider } = source;
  const txt = (record: RecordKind, at: string, value: string, required = false): WantedRecord => {
    return { record, type: 'TXT', name: at, value, required };
  };
  const { dkim, return_path: returnPath } = provider ?? {};
  return [
    txt('OWNERSHIP', `_sendwright.${name}`, `sendwright-verification=${token}`, true),
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

/** Where the public half of our own key is published. */
export function ownDkimName(name: string): string {
  return `${DKIM_SELECTOR}._domainkey.${name}`;
}

/** Which servers an SPF record should name: what we know of those that the mail leaves by. */
function mechanisms({ postmark, smtpHost }: Senders): string {
  const smtp = smtpHost === null ? [] : [/^[\d.]+$/.test(smtpHost) ? `ip4:${smtpHost}` : `a:${smtpHost}`];
  // An IPv6 address needs a mechanism of its own, and nobody names his server so.
  const named = smtp.filter((each) => !each.includes('[')).concat(postmark ? [POSTMARK_SPF] : []);
  return named.map((each) => `${each} `).join('');
}

/** The records with what was found. */
export function showRecords(wanted: readonly WantedRecord[], findings: Findings): ShownRecord[] {
  return wanted.map(({ record, type, name, value, required, ...rest }) => {
    const { status, found, error } = findings[findingKey({ record, name, ...rest })] ?? NOT_ASKED;
    return { record, type, name, value, priority: null, ttl: TTL, required, status, found, error };
  });
}

const NOT_ASKED = { status: 'pending', found: null, error: null } as const;
