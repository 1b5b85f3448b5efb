import { randomUUID } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Head, InboxMessage, Received } from '../inbox/message.ts';
import { problemOf } from '../magic.ts';
import { parseAddress, splitAddresses } from './addresses.ts';
import { CODE, type PostmarkError } from './errors.ts';

const text = Type.Optional(Type.Union([Type.String(), Type.Null()]));

/** The fields of `POST /email` that the simulator reads. Like Postmark, it ignores unknown fields. */
const Email = Type.Object({
  From: text,
  To: text,
  Cc: text,
  Bcc: text,
  ReplyTo: text,
  Subject: text,
  TextBody: text,
  HtmlBody: text,
  Tag: text,
  MessageStream: text,
  Headers: Type.Optional(
    Type.Union([Type.Array(Type.Object({ Name: Type.String(), Value: Type.String() })), Type.Null()]),
  ),
  Metadata: Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()])),
  Attachments: Type.Optional(
    Type.Union([
      Type.Array(
        Type.Object({ Name: Type.String(), Content: Type.String(), ContentType: Type.String(), ContentID: text }),
      ),
      Type.Null(),
    ]),
  ),
});
type Email = Static<typeof Email>;
const email = Compile(Email);

/** Postmark's limits. They differ from other providers', so they are not in the domain. */
const MAX_RECIPIENTS = 50;
const MAX_BODY_BYTES = 5 * 1_048_576;
/** The size of one message in bytes: both bodies and the attachments in base64. */
export const MAX_MESSAGE_BYTES = 10 * 1_048_576;
const METADATA_LIMITS = { fields: 10, name: 20, value: 80 };
/** The stream of a message that states none. */
export const DEFAULT_STREAM = 'outbound';
const MAX_TAG_LENGTH = 1_000;
const FORBIDDEN_EXTENSIONS = new Set(
  (
    'vbs exe bin bat chm com cpl crt hlp hta inf ins isp jse lnk mdb pcd pif reg scr sct shs vbe vba wsf wsh wsl ' +
    'msc msi msp mst'
  ).split(' '),
);

/** An acceptable message, with its lists of addresses as sent, which Postmark's response repeats. */
export interface ValidMessage extends Received<InboxMessage> {
  readonly given: Readonly<Record<'To' | 'Cc' | 'Bcc', string | null | undefined>>;
}

/**
 * Validates one message as Postmark does. Returns Postmark's error, or the message with a new id.
 * @param now Unix milliseconds
 */
export function parseAndValidate(input: unknown, now: number): PostmarkError | ValidMessage {
  if (!email.Check(input)) {
    const [error] = email.Errors(input);
    const where = error?.instancePath.slice(1).replaceAll('/', '.') || 'The message';
    return refuse(CODE.incompatibleJson, `${where} ${error?.message ?? 'has the wrong type'}.`);
  }
  return checkContent(input) ?? checkAttachments(input) ?? accept(input, now);
}

function refuse(code: number, message: string): PostmarkError {
  return { ErrorCode: code, Message: message };
}

function checkContent(mail: Email): PostmarkError | undefined {
  if (!mail.TextBody && !mail.HtmlBody) return invalidRequest('Provide either email TextBody or HtmlBody or both.');
  for (const name of ['TextBody', 'HtmlBody'] as const) {
    if (Buffer.byteLength(mail[name] ?? '') > MAX_BODY_BYTES) return invalidRequest(`${name} must be at most 5 MB.`);
  }
  if ((mail.Tag ?? '').length > MAX_TAG_LENGTH)
    return invalidRequest(`Tag must be at most ${MAX_TAG_LENGTH} characters.`);
  const metadata = Object.entries(mail.Metadata ?? {});
  if (metadata.length > METADATA_LIMITS.fields)
    return invalidRequest(`Metadata must have at most ${METADATA_LIMITS.fields} fields.`);
  const long = metadata.find(
    ([name, value]) => name.length > METADATA_LIMITS.name || value.length > METADATA_LIMITS.value,
  );
  if (long)
    return invalidRequest(
      `Metadata must have names of at most ${METADATA_LIMITS.name} and values of at most ${METADATA_LIMITS.value}.`,
    );
  const names = new Set(metadata.map(([name]) => name.toLowerCase()));
  return names.size < metadata.length
    ? invalidRequest('Metadata must have names that differ in more than case.')
    : undefined;
}

function invalidRequest(message: string): PostmarkError {
  return refuse(CODE.invalidEmail, message);
}

function checkAttachments(mail: Email): PostmarkError | undefined {
  const files = mail.Attachments ?? [];
  const forbidden = files.some(({ Name }) =>
    FORBIDDEN_EXTENSIONS.has(/\.([^.]*)$/.exec(Name)?.[1]?.toLowerCase() ?? ''),
  );
  if (forbidden) return refuse(CODE.forbiddenAttachment, 'Attachments must not have a forbidden file extension.');
  const bytes = [mail.TextBody ?? '', mail.HtmlBody ?? '', ...files.map(({ Content }) => Content)].reduce(
    (sum, part) => sum + Buffer.byteLength(part),
    0,
  );
  return bytes > MAX_MESSAGE_BYTES ? invalidRequest('The message must be at most 10 MB.') : undefined;
}

function accept(mail: Email, now: number): PostmarkError | ValidMessage {
  const from = splitAddresses(mail.From ?? '');
  const to = splitAddresses(mail.To ?? '');
  const cc = splitAddresses(mail.Cc ?? '');
  const bcc = splitAddresses(mail.Bcc ?? '');
  const all = [...to, ...cc, ...bcc];
  if (from.length !== 1) return invalidRequest("'From' must be one address.");
  if (to.length === 0) return invalidRequest("'To' must have at least one address.");
  if (all.length > MAX_RECIPIENTS)
    return invalidRequest(`'To', 'Cc' and 'Bcc' must have at most ${MAX_RECIPIENTS} addresses in all.`);
  const illegal = [...from, ...splitAddresses(mail.ReplyTo ?? ''), ...all].find((address) => !parseAddress(address));
  if (illegal !== undefined) return invalidRequest(`Illegal email address '${illegal}'.`);

  const recipients = bareAddresses(all);
  const problem = problemOf(recipients);
  if (problem !== undefined) return invalidRequest(problem);

  const id = randomUUID();
  const head: Head = {
    id,
    provider: 'postmark',
    received_at: now,
    recipients,
    metadata: mail.Metadata ?? {},
    tag: mail.Tag || null,
    stream: mail.MessageStream || DEFAULT_STREAM,
  };
  const message: InboxMessage = {
    provider: 'postmark',
    id,
    from: mail.From as string,
    to,
    cc,
    bcc,
    subject: mail.Subject ?? '',
    text: mail.TextBody || null,
    html: mail.HtmlBody || null,
    headers: headersOf(mail),
    attachments: (mail.Attachments ?? []).map((file) => ({
      filename: file.Name,
      content_type: file.ContentType,
      size: Buffer.byteLength(file.Content, 'base64'),
      content_id: file.ContentID?.replace(/^cid:/, '') ?? null,
    })),
    received_at: new Date(now).toISOString(),
  };
  return { head, message, given: { To: mail.To, Cc: mail.Cc, Bcc: mail.Bcc } };
}

/** Returns addresses without names and without duplicates, ignoring case. */
function bareAddresses(addresses: readonly string[]): string[] {
  const bare = addresses.map((address) => parseAddress(address)?.Email as string);
  return [...new Map(bare.map((address) => [address.toLowerCase(), address])).values()];
}

/** Returns the custom headers; the values of a repeated name are joined. */
function headersOf(mail: Email): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>;
  if (mail.ReplyTo) headers['Reply-To'] = mail.ReplyTo;
  for (const { Name, Value } of mail.Headers ?? [])
    headers[Name] = headers[Name] === undefined ? Value : `${headers[Name]}, ${Value}`;
  return headers;
}
