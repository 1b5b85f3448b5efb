import { type Mailbox, parseMailbox } from './address.ts';
import { isControlHeader } from './control-headers.ts';
import type { DkimSigner } from '../senders/dkim.ts';

/** A file as a provider gets it, with all that it holds. */
export interface OutgoingFile {
  readonly filename: string;
  readonly contentType: string;
  /** Set when it is shown inside the HTML. */
  readonly contentId: string | null;
  readonly content: Buffer;
}

/** An email as a provider gets it: addresses parsed, no address twice. */
export interface OutgoingEmail {
  readonly id: string;
  /** Of a marketing email to several, which of its recipients this copy is for, counted from 0; null for a whole email. */
  readonly copy: number | null;
  readonly marketing: boolean;
  readonly from: Mailbox;
  readonly to: readonly Mailbox[];
  readonly cc: readonly Mailbox[];
  readonly bcc: readonly Mailbox[];
  readonly replyTo: readonly Mailbox[];
  readonly subject: string;
  readonly html: string | null;
  readonly text: string | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly files: readonly OutgoingFile[];
  /** Ours, so that every attempt carries the same one (RFC 5322 §3.6.4); with its angle brackets. */
  readonly messageId: string;
  /** What we sign it with, where the provider does not; null when its domain has no key of ours. */
  readonly dkim: DkimSigner | null;
}

interface StoredEmail {
  id: string;
  marketing: boolean;
  from: string;
  to: readonly string[];
  cc: readonly string[] | null;
  bcc: readonly string[] | null;
  reply_to: readonly string[] | null;
  subject: string;
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
}

/** Makes a stored email ready to leave. */
export function toOutgoing(email: StoredEmail, files: readonly OutgoingFile[] = []): OutgoingEmail {
  const from = stored(email.from);
  return {
    id: email.id,
    copy: null,
    marketing: email.marketing,
    from,
    ...addressees(email),
    replyTo: (email.reply_to ?? []).map(stored),
    subject: email.subject,
    html: email.html || null,
    text: email.text || null,
    // The API refuses control headers; emails that it accepted before it did may still be waiting.
    headers: Object.entries(email.headers).filter(([name]) => !isControlHeader(name)),
    files,
    messageId: `<${email.id}@${from.domain}>`,
    dkim: null,
  };
}

/** A marketing email as it goes to one of its recipients, addressed to nobody else (its position counted from 0). */
export function toCopy(email: OutgoingEmail, copy: number): OutgoingEmail {
  const recipient = recipients(email)[copy];
  if (!recipient) throw new Error(`there is no recipient ${copy}`);
  const messageId = `<${email.id}.${copy}@${email.from.domain}>`;
  return { ...email, copy, to: [recipient], cc: [], bcc: [], messageId };
}

/** What names an email, or a copy of it, to a provider that is asked about a call. */
export function copyKey(id: string, copy: number | null): string {
  return copy === null ? id : `${id}.${copy}`;
}

/** The email that a `copyKey` is of. */
export function emailOfKey(key: string): string {
  return key.split('.', 1)[0] as string;
}

type Addressees = Pick<OutgoingEmail, 'to' | 'cc' | 'bcc'>;

/** Who gets a stored email. An address that stands in several places keeps the first of to, cc, bcc. */
export function addressees(email: Pick<StoredEmail, keyof Addressees>): Addressees {
  const seen = new Set<string>();
  const unseen = (addresses: readonly string[] | null): Mailbox[] =>
    (addresses ?? []).map(stored).filter(({ address }) => {
      const key = address.toLowerCase();
      return seen.has(key) ? false : seen.add(key);
    });
  return { to: unseen(email.to), cc: unseen(email.cc), bcc: unseen(email.bcc) };
}

/** Every recipient of the envelope. */
export function recipients(email: Addressees): Mailbox[] {
  return [...email.to, ...email.cc, ...email.bcc];
}

/** `"Name" <local@domain>`, the name always quoted: unquoted punctuation means different things to different readers. */
export function formatMailbox({ name, address }: Mailbox): string {
  return name === null ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`;
}

function stored(text: string): Mailbox {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') throw new Error(`a stored address can no longer be read: ${mailbox}`);
  return mailbox;
}
