import { Readable } from 'node:stream';
import ipaddr from 'ipaddr.js';
import { createTransport } from 'nodemailer';
import { encodeWord, encodeWords } from 'nodemailer/lib/mime-funcs';
import type { DkimSigner } from '../../domain/senders/dkim.ts';
import { envelopeOf, type OutgoingEmail } from '../../domain/email/outgoing.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import type { Connections, EmailProvider } from '../email-provider.ts';
import { signDkim } from './dkim.ts';
import { serialize } from './mime.ts';
import { fewerRecipients, makeRecipientLimit } from './recipient-limit.ts';
import { classifyRefusal, namedRecipients, overLimit, type SmtpError } from './refusals.ts';

interface Timeouts {
  /**
   * From the call to the last byte of the message. RFC 5321 section 4.5.3.2 suggests
   * minutes for each step. Giving up before the last byte is harmless, since the server cannot have accepted the message.
   */
  readonly transferMs: number;
  /** From the connection attempt to the server's greeting. */
  readonly connectMs?: number;
  /** From the last byte to the reply. A shorter time than the RFC's 10 minutes (section 4.5.3.2.6) produces duplicates. */
  readonly replyMs: number;
}

const TIMEOUTS: Timeouts = { transferMs: 40_000, replyMs: 600_000 };
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * Per worker process. Postfix allows 50 per client (smtpd_client_connection_count_limit), so the late ones are opened only for
 * a server that leaves calls without a reply.
 */
const CONNECTIONS: Connections = { usual: 40, late: 40 };
/** Emails that are claimed together. */
const CALL_SIZE = 25;
/** If this many emails are slow, more than half of the connections remain for others. */
const OVERLAP = 16;
/** Without CRLF (RFC 5322 section 2.1.1). */
const MAX_LINE_LENGTH = 998;

/** The progress of one SMTP session. Once the last byte is written, the server may have accepted the message (RFC 1047). */
interface Progress {
  wroteAll: boolean;
  onWroteAll: () => void;
  /** Resolves when the terminating dot may be sent. */
  handOver: () => Promise<void>;
  /** Nodemailer's own, to which it adds the replies to its recipients. The error of a message that is refused later has none. */
  envelope: { readonly accepted?: readonly string[]; readonly rejectedErrors?: readonly SmtpError[] };
}

/** Passed through nodemailer with a message. */
interface MessageContext {
  readonly progress: Progress;
  readonly signer: DkimSigner | null;
}

/**
 * Returns true if email may be sent to this server only after STARTTLS. Without STARTTLS, a man in the middle can remove it
 * from the server's greeting and read the password and all email. Loopback is exempt, and `?requireTLS=false` is the
 * operator's exception for other trusted networks.
 */
export function requiresTls(url: string): boolean {
  const { hostname, searchParams } = new URL(url);
  const choice = searchParams.get('requireTLS');
  if (choice !== null) return choice !== 'false';
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const isLoopback = host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback');
  return !isLoopback;
}

/** Returns the connections that the URL allows: `maxConnections` limits their sum, of which a quarter is for late replies. */
function connectionsOf(url: string): Connections {
  const total = Number(new URL(url).searchParams.get('maxConnections'));
  if (!(total >= 1)) return CONNECTIONS;
  const late = Math.floor(total / 4);
  return { usual: Math.floor(total) - late, late };
}

/**
 * Sends email to an SMTP server over a pool of connections.
 * @param url such as `smtps://user:password@smtp.example.com:465`
 */
export function smtp(url: string, timeouts = TIMEOUTS): EmailProvider {
  const connections = connectionsOf(url);
  const transport = createTransport({
    url,
    requireTLS: requiresTls(url),
    tls: { minVersion: 'TLSv1.2' },
    pool: true,
    maxConnections: connections.usual + connections.late,
    maxMessages: 1_000,
    idleTimeout: 30_000,
    // By default the pool resends a message when its connection closes, even after the last byte.
    maxRequeues: 0,
    connectionTimeout: timeouts.connectMs ?? CONNECT_TIMEOUT_MS,
    greetingTimeout: timeouts.connectMs ?? CONNECT_TIMEOUT_MS,
    // Each phase has its own timer below.
    socketTimeout: timeouts.transferMs + timeouts.replyMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });

  const recipientLimit = makeRecipientLimit();

  /** Sends an email to as many of its recipients as the server takes in one transaction. The others are deferred. */
  async function sendOne(email: OutgoingEmail, handOver: () => Promise<void>): Promise<SendOutcome> {
    const all = envelopeOf(email).map(({ address }) => address);
    const most = recipientLimit.current();
    const outcome = await transact(email, all.slice(0, most), handOver);
    return deferOthers(outcome, all.slice(most), `The SMTP server takes ${most} recipients at a time.`);
  }

  async function transact(
    email: OutgoingEmail,
    recipients: readonly string[],
    handOver: () => Promise<void>,
  ): Promise<SendOutcome> {
    // AbortSignal.timeout() would fire for every message, long after it was sent.
    const deadline = new AbortController();
    let timer = setTimeout(() => deadline.abort(), timeouts.transferMs);
    const onWroteAll = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => deadline.abort(), timeouts.replyMs);
    };
    const progress: Progress = {
      wroteAll: false,
      onWroteAll,
      async handOver() {
        await handOver();
        deadline.signal.throwIfAborted();
      },
      envelope: {},
    };
    const context: MessageContext = { progress, signer: email.dkim };
    const message = { ...toMessage(email, recipients), ...context, signal: deadline.signal };
    try {
      const { rejectedErrors = [] } = await transport.sendMail(message);
      return { kind: 'sent', messageId: email.messageId, ...namedRecipients(rejectedErrors) };
    } catch (error) {
      const failure = error as SmtpError;
      const { accepted = [], rejectedErrors = [] } = progress.envelope;
      const fewer = fewerRecipients(failure, accepted.length);
      if (fewer === undefined) return classifyFailure(failure, progress, recipients.length);
      recipientLimit.lower(fewer);
      return overLimit(failure, rejectedErrors);
    } finally {
      clearTimeout(timer);
    }
  }

  transport.use('stream', ({ data, message }, done) => {
    const { progress, signer } = data as unknown as MessageContext;
    progress.envelope = message.getEnvelope() as Progress['envelope'];
    message.createReadStream = () => {
      const pieces = serialize(message);
      const signed = signer ? signDkim(pieces, signer) : pieces;
      const stream = untilHandedOver(signed, progress);
      // The stream ends when its last byte is read, and nodemailer reads nothing before the server has replied 354 to DATA. When it
      // ends, nodemailer sends the terminating dot.
      return stream.once('end', () => {
        progress.wroteAll = true;
        progress.onWroteAll();
      });
    };
    done();
  });

  return {
    name: 'smtp',
    callSize: CALL_SIZE,
    overlap: OVERLAP,
    connections,
    hasTracking: false,
    awaitsHandOver: true,
    refusal: () => undefined,
    send: (emails, _call, onOutcome, handOver = () => Promise.resolve()) =>
      Promise.all(
        emails.map(async (email, position) => {
          const outcome = await sendOne(email, () => handOver(position));
          onOutcome?.(position, outcome);
          return outcome;
        }),
      ),
  };
}

/**
 * Streams the pieces of a message. The stream ends when the hand-over is recorded, and fails if the message may not be handed over. It
 * costs less than `Readable.from` with an asynchronous generator (decision 171).
 */
function untilHandedOver(pieces: Iterable<Buffer> | AsyncIterable<Buffer>, progress: Progress): Readable {
  const iterator = Symbol.iterator in pieces ? pieces[Symbol.iterator]() : pieces[Symbol.asyncIterator]();
  const stream = new Readable({
    read() {
      const next = iterator.next();
      if (next instanceof Promise) next.then(push).catch(fail);
      else push(next);
    },
  });
  const fail = (error: Error): unknown => stream.destroy(error);
  const push = ({ value, done }: IteratorResult<Buffer>): void => {
    if (done) progress.handOver().then(() => stream.push(null), fail);
    else stream.push(value);
  };
  return stream;
}

/** Adds recipients to those that an outcome defers: the transaction did not name them. */
function deferOthers(outcome: SendOutcome, others: readonly string[], detail: string): SendOutcome {
  if (others.length === 0 || outcome.kind === 'account' || outcome.kind === 'postponed') return outcome;
  const unnamed = others.map((recipient) => ({ recipient, detail, isOverLimit: true }));
  return { ...outcome, deferred: [...(outcome.deferred ?? []), ...unnamed] };
}

function toMessage(email: OutgoingEmail, recipients: readonly string[]) {
  const list = (mailboxes: OutgoingEmail['to']) =>
    mailboxes.map(({ name, address }) => ({ name: name ?? '', address }));
  return {
    envelope: { from: email.from.address, to: [...recipients] },
    from: list([email.from]),
    to: list(email.to),
    cc: list(email.cc),
    replyTo: list(email.replyTo),
    subject: toSubject(email.subject),
    messageId: email.messageId,
    date: new Date(),
    // The id is unique, and cheaper than nodemailer's random boundary.
    baseBoundary: email.id,
    headers: email.headers.map(toHeader),
    ...(email.html !== null && { html: email.html }),
    ...(email.text !== null && { text: email.text }),
    attachments: email.files.map(({ filename, contentType, contentId, content }) => ({
      filename,
      content,
      contentType: /^message\//i.test(contentType) && !isMailText(content) ? OTHER_FILE : contentType,
      contentDisposition: contentId === null ? ('attachment' as const) : ('inline' as const),
      ...(contentId !== null && { cid: contentId }),
    })),
  };
}

const OTHER_FILE = 'application/octet-stream';

/**
 * Returns true for bytes that SMTP carries unchanged (RFC 5321 section 2.3.8). A part with the type of a message must not be encoded
 * (RFC 2046 section 5.2.1), so a file such as `a.eml` with other bytes is sent as a file of unknown type, in base64.
 */
function isMailText(content: Buffer): boolean {
  const lines = content.toString('latin1').split('\r\n');
  // eslint-disable-next-line no-control-regex -- ASCII without NUL, CR and LF
  return lines.every((line) => line.length <= MAX_LINE_LENGTH && /^[\x01-\x09\x0B\x0C\x0E-\x7F]*$/.test(line));
}

/** The maximum length of an encoded word in characters, the same as in nodemailer. RFC 2047 section 2 allows 75. */
const ENCODED_WORD_LENGTH = 52;

const WORD_OF_A_WHOLE_LINE = new RegExp(`\\S{${MAX_LINE_LENGTH}}`);

/** Matches text that readers would decode (RFC 2047), although it was not encoded by us. */
const LIKE_ENCODED_WORD = /=\?.*\?=/;

/**
 * Encodes a subject that nodemailer would send as it is but that would not arrive as it is: one that looks like an encoded word,
 * and one with a word as long as a line, which folding puts on a line of its own after a space, so that line would be too long.
 */
function toSubject(subject: string): string {
  return WORD_OF_A_WHOLE_LINE.test(subject) || LIKE_ENCODED_WORD.test(subject)
    ? encodeWord(subject, 'Q', ENCODED_WORD_LENGTH)
    : subject;
}

const ASCII = /^[\x20-\x7E]*$/;
/** Nodemailer does not encode these, since encoded words have no meaning in them. Other characters than ASCII need SMTPUTF8 (RFC 6531). */
const UNENCODED_HEADERS = new Set(['content-id', 'in-reply-to', 'otp-token', 'references']);

/**
 * Nodemailer encodes a value with a quotation mark as a whole (RFC 2047), which parsers of structured headers do not decode. A value of
 * printable ASCII needs no encoding. From other values nodemailer removes line breaks. It accepts only text for References.
 */
function toHeader([key, value]: OutgoingEmail['headers'][number]) {
  const name = key.toLowerCase();
  const isEncodedHere = UNENCODED_HEADERS.has(name) && !ASCII.test(value);
  const text = isEncodedHere ? encodeWords(value, 'Q', ENCODED_WORD_LENGTH) : value;
  const isPrepared = ASCII.test(text) && name !== 'references';
  return { key, value: isPrepared ? { prepared: true, foldLines: true, value: text } : text };
}

const CONNECTION_FAULTS: Readonly<Record<string, string>> = {
  EDNS: 'host name not found',
  ECONNECTION: 'connection lost',
  ESOCKET: 'connection lost',
  ETIMEDOUT: 'no answer in time',
  EABORT: 'no answer in time',
  ETLS: 'no encrypted connection',
};
/** Nodemailer's code for a message whose stream failed, which here means that its hand-over was not recorded. */
const NOT_HANDED_OVER = 'ESTREAM';

function classifyFailure(failure: SmtpError, progress: Progress, recipientCount: number): SendOutcome {
  const { code = '', responseCode } = failure;
  const { rejectedErrors = [] } = progress.envelope;
  // No reply, or an unexpected one: only 4xx and 5xx mean that the message was not accepted.
  if (responseCode === undefined || responseCode < 400) {
    if (code === NOT_HANDED_OVER) return { kind: 'busy', detail: 'The message was not completed in time.' };
    const reason = CONNECTION_FAULTS[code] ?? 'the conversation failed';
    return progress.wroteAll
      ? { kind: 'unknown', detail: `The SMTP server did not answer: ${reason}.`, ...namedRecipients(rejectedErrors) }
      : { kind: 'busy', detail: `The SMTP server could not be reached: ${reason}.` };
  }
  return classifyRefusal(failure, recipientCount, rejectedErrors);
}
