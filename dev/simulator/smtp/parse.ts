import { randomUUID } from 'node:crypto';
import PostalMime, { type Address, decodeWords, type Email, type Mailbox } from 'postal-mime';
import type { InboxMessage, Received } from '../inbox/message.ts';

/** RFC 5322 specials: a name that holds one is shown in double quotes. The dot is left alone, as everyone does. */
const SPECIALS = /[()<>[\]:;@\\,"]/;

/**
 * Reads a message as it came by SMTP. The envelope contains the recipients, the headers those that are shown: a recipient that neither
 * To nor Cc names is a bcc. Rejects when the MIME structure is beyond reason.
 * @param recipients of the envelope
 * @param now Unix milliseconds
 */
export async function parseMessage(raw: Buffer, recipients: readonly string[], now: number): Promise<Received> {
  const mail = await PostalMime.parse(raw);
  const to = mailboxes(mail.to);
  const cc = mailboxes(mail.cc);
  const shown = new Set([...to, ...cc].map(({ address }) => address.toLowerCase()));
  const unique = [...new Map(recipients.map((address) => [address.toLowerCase(), address])).values()];
  const id = randomUUID();
  const message: InboxMessage = {
    provider: 'smtp',
    id,
    from: mailboxes(mail.from && [mail.from])
      .map(format)
      .join(', '),
    to: to.map(format),
    cc: cc.map(format),
    bcc: unique.filter((address) => !shown.has(address.toLowerCase())),
    subject: mail.subject ?? '',
    text: mail.text === undefined ? null : withoutLastNewline(mail.text),
    html: mail.html === undefined ? null : withoutLastNewline(mail.html),
    headers: headersOf(mail),
    attachments: mail.attachments.map((file) => ({
      filename: file.filename,
      content_type: file.mimeType,
      size: typeof file.content === 'string' ? Buffer.byteLength(file.content) : file.content.byteLength,
      content_id: file.contentId?.replace(/^<|>$/g, '') ?? null,
    })),
    received_at: new Date(now).toISOString(),
  };
  const head = { id, provider: 'smtp', received_at: now, recipients: unique, metadata: {}, tag: null, stream: null };
  return { head: head as Received['head'], message };
}

function mailboxes(addresses: readonly Address[] | undefined): Mailbox[] {
  return (addresses ?? []).flatMap((address) => address.group ?? [address]);
}

function format({ name, address }: Mailbox): string {
  if (name === '') return address;
  return `${SPECIALS.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name} <${address}>`;
}

/** A body in SMTP ends in a line break, so the last one is not the sender's. */
function withoutLastNewline(body: string): string {
  return body.replace(/\n$/, '');
}

/** Decoded; of several with one name, all values. */
function headersOf(mail: Email): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>;
  for (const { originalKey, value } of mail.headers) {
    const text = decodeWords(value);
    headers[originalKey] = headers[originalKey] === undefined ? text : `${headers[originalKey]}, ${text}`;
  }
  return headers;
}
