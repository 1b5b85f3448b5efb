import { randomUUID } from 'node:crypto';
import PostalMime, { type Address, decodeWords, type Email, type Mailbox } from 'postal-mime';
import type { InboxMessage, Received } from '../inbox/message.ts';

/** RFC 5322 specials: a name that contains one is quoted. The dot is excluded, as is common. */
const SPECIALS = /[()<>[\]:;@\\,"]/;

/**
 * Parses a message from SMTP. The envelope contains all recipients, the headers only the visible ones; a recipient that is
 * neither in To nor in Cc is a bcc. Rejects if the MIME structure is too complex.
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

/** Removes the final line break, which SMTP adds to a body. */
function withoutLastNewline(body: string): string {
  return body.replace(/\n$/, '');
}

/** Returns decoded headers; the values of a repeated name are joined. */
function headersOf(mail: Email): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>;
  for (const { originalKey, value } of mail.headers) {
    const text = decodeWords(value);
    headers[originalKey] = headers[originalKey] === undefined ? text : `${headers[originalKey]}, ${text}`;
  }
  return headers;
}
