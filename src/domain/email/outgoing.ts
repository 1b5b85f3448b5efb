import { type Mailbox, parseMailbox } from './address.ts';
import type { EmailContent } from './content.ts';
import { isControlHeader, isServerHeader } from './control-headers.ts';
import type { EmailRequest } from './email.ts';
import type { DkimSigner } from '../senders/dkim.ts';
import { type Tracking, UNTRACKED } from './tracked-links.ts';

/** A file with its content in the form for providers. */
export interface OutgoingFile {
  readonly filename: string;
  readonly contentType: string;
  /** Set for files that the HTML displays inline. */
  readonly contentId: string | null;
  readonly content: Buffer;
}

/** An email in the form for providers: addresses are parsed and unique. */
export interface OutgoingEmail {
  readonly id: string;
  /** The recipient of this copy of a marketing email, counted from 0; null for an email that is not split. */
  readonly copy: number | null;
  readonly marketing: boolean;
  readonly from: Mailbox;
  readonly to: readonly Mailbox[];
  readonly cc: readonly Mailbox[];
  readonly bcc: readonly Mailbox[];
  /** The recipients that it is sent to now, if a server has answered finally about others of to, cc and bcc; null for all. */
  readonly envelope: readonly Mailbox[] | null;
  readonly replyTo: readonly Mailbox[];
  readonly subject: string;
  readonly html: string | null;
  readonly text: string | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly files: readonly OutgoingFile[];
  /** Generated once, so that all attempts use the same one (RFC 5322 §3.6.4); with angle brackets. */
  readonly messageId: string;
  /** Our DKIM key; null when the provider signs or the domain has no key. */
  readonly dkim: DkimSigner | null;
  /** The tracking of its sender domain, done by the provider if it has its own. */
  readonly tracking: Tracking;
  /** The unsubscribe link of its recipient; null unless it is marketing email. */
  readonly unsubscribeUrl: string | null;
  /** False if the provider must not track opens and clicks, whatever its settings are. */
  readonly isTracked: boolean;
}

type StoredEmail = Omit<EmailRequest, 'tags' | 'scheduled_at' | keyof EmailContent> & { readonly id: string };

export function toOutgoing(
  email: StoredEmail,
  { html, text, headers }: EmailContent,
  files: readonly OutgoingFile[] = [],
): OutgoingEmail {
  const from = parseStoredAddress(email.from);
  const { to, cc, bcc } = addressees(email);
  return {
    id: email.id,
    copy: null,
    marketing: email.marketing,
    from,
    to,
    cc,
    bcc,
    envelope: null,
    replyTo: (email.reply_to ?? []).map(parseStoredAddress),
    subject: email.subject,
    html: html || null,
    text: text || null,
    // The API refuses these headers; emails accepted before that check existed may still be pending.
    headers: Object.entries(headers).filter(([name]) => !isControlHeader(name) && !isServerHeader(name)),
    files,
    messageId: `<${email.id}@${from.domain}>`,
    dkim: null,
    tracking: UNTRACKED,
    unsubscribeUrl: null,
    isTracked: true,
  };
}

/** Returns the copy of a marketing email for one recipient (its position counted from 0). */
export function toCopy(email: OutgoingEmail, copy: number): OutgoingEmail {
  const recipient = recipients(email)[copy];
  if (!recipient) throw new Error(`there is no recipient ${copy}`);
  const messageId = `<${email.id}.${copy}@${email.from.domain}>`;
  return { ...email, copy, to: [recipient], cc: [], bcc: [], messageId };
}

/** Returns the key that identifies an email, or a copy of it, when attempts are reconciled with a provider. */
export function copyKey(id: string, copy: number | null): string {
  return copy === null ? id : `${id}.${copy}`;
}

export function emailOfKey(key: string): string {
  return key.split('.', 1)[0] as string;
}

type Addressees = Pick<OutgoingEmail, 'to' | 'cc' | 'bcc'>;

/**
 * Returns the recipients of a stored email without duplicates. An address in several fields stays in the first of to, cc,
 * bcc.
 */
export function addressees(email: Pick<StoredEmail, keyof Addressees>): Addressees {
  const seen = new Set<string>();
  const unseen = (addresses: readonly string[] | null): Mailbox[] =>
    (addresses ?? []).map(parseStoredAddress).filter(({ address }) => {
      const key = address.toLowerCase();
      return seen.has(key) ? false : seen.add(key);
    });
  return { to: unseen(email.to), cc: unseen(email.cc), bcc: unseen(email.bcc) };
}

export function recipients(email: Addressees): Mailbox[] {
  return [...email.to, ...email.cc, ...email.bcc];
}

/** Returns the recipients that an email is sent to now. */
export function envelopeOf(email: Pick<OutgoingEmail, keyof Addressees | 'envelope'>): readonly Mailbox[] {
  return email.envelope ?? recipients(email);
}

/** Returns true for a copy of a marketing email, and for an email to its deferred recipients: other recipients may have it. */
export function isPart({ copy, envelope }: Pick<OutgoingEmail, 'copy' | 'envelope'>): boolean {
  return copy !== null || envelope !== null;
}

/** Formats `"Name" <local@domain>` with the name always quoted: parsers disagree about unquoted punctuation. */
export function formatMailbox({ name, address }: Mailbox): string {
  return name === null ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`;
}

function parseStoredAddress(text: string): Mailbox {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') throw new Error(`a stored address can no longer be read: ${mailbox}`);
  return mailbox;
}
