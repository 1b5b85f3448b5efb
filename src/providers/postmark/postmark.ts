import { Errors, type Message, Models, ServerClient } from 'postmark';
import { markLinks } from '../../domain/email/html-links.ts';
import {
  copyKey,
  formatMailbox,
  type OutgoingEmail,
  type OutgoingFile,
  recipients,
} from '../../domain/email/outgoing.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import type { EmailProvider } from '../email-provider.ts';
import { classifyUnanswered, type Trace, traced, tracedFetch, unclearAnswer } from '../http-trace.ts';
import { askForReports } from './reports.ts';

export interface PostmarkApi {
  readonly baseUrl: string;
  /** Seconds that a call may take; 30 by default. */
  readonly timeout?: number;
}

export interface PostmarkSettings extends PostmarkApi {
  readonly serverToken: string;
  /** The message stream for all but marketing email. */
  readonly messageStream: string;
  readonly broadcastStream: string;
  /** Signs the email id that goes out in the metadata; callbacks return both. */
  readonly signEmailId?: ((emailId: string) => string) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** Postmark's own limits, https://postmarkapp.com/developer/user-guide/send-email-with-api */
const MAX_RECIPIENTS = 50;
const MAX_BATCH = 500;
/**
 * Emails of one call. Postmark allows MAX_BATCH, but a call of that many occupies the worker for so long that single emails wait
 * behind it.
 */
const CALL_SIZE = 100;
/** The next call of a group is claimed while one is under way. */
const OVERLAP = CALL_SIZE;
/** Of one message as JSON. */
const MAX_BYTES = 10 * 1_048_576;
/** Of bodies as JSON and files in base64 that one request takes: Postmark allows 50 MB, and it is in memory as a whole. */
const MAX_REQUEST_BYTES = 30 * 1_048_576;
/** JSON writes one UTF-16 unit in at most six bytes. */
const MAX_BYTES_PER_UNIT = 6;
/** Milliseconds for which further requests are begun for one call: the copies of an email with files may be many. */
const GO_ON_WITHIN = 20_000;
const NOT_TRIED: SendOutcome = { kind: 'busy', detail: 'The files of its other copies took all the time there was.' };
/** UTF-16 units of both bodies up to which MAX_BYTES is out of reach. */
const SURELY_FITS = 1_000_000;
const NOTHING = Buffer.alloc(0);
/** Stands for the name of a call, as long as all of them are. */
const A_CALL = 'call_'.padEnd(31, '0');
/** Identifies all calls that contained this email. */
const EMAIL_ID = /^em_/;
/** The address expression that Postmark publishes (https://postmarkapp.com/support/article/1180) lacks this one. */
const NO_LOCAL_PART = /\?/;
/** Seconds. The SDK's own 180 would hold a place for three minutes when Postmark hangs. */
const TIMEOUT = 30;

export function postmark(settings: PostmarkSettings): EmailProvider {
  const client = new ServerClient(settings.serverToken, { ...clientOptions(settings), fetch: tracedFetch });

  async function post(messages: Message[]): Promise<unknown> {
    const [single] = messages;
    return single && messages.length === 1 ? [await client.sendEmail(single)] : client.sendEmailBatch(messages);
  }

  async function sendPart(emails: readonly OutgoingEmail[], call: string): Promise<SendOutcome[]> {
    const { trace, result } = await traced(() => post(emails.map((email) => toMessage(email, call, settings))));
    if (result.status === 'rejected') return forAll(emails, classifyFailure(result.reason, trace));
    const { value } = result;
    const each = Array.isArray(value) && value.length === emails.length;
    return each
      ? emails.map((email, i) => withRefused(email, value[i], classifyAnswer(value[i])))
      : forAll(emails, classifyAnswer(value));
  }

  /** Without a stream, Postmark searches its default stream only. */
  async function search(stream: string, call: string): Promise<Models.OutboundMessage[]> {
    const field = EMAIL_ID.test(call) ? 'metadata_email' : 'metadata_call';
    // The SDK's type of the filter lacks the metadata fields that the API documents.
    const filter = { count: MAX_BATCH, offset: 0, messagestream: stream, [field]: call };
    try {
      return (await client.getOutboundMessages(filter)).Messages;
    } catch (error) {
      if (isStreamMissing(error)) return [];
      throw error;
    }
  }

  return {
    name: 'postmark',
    callSize: CALL_SIZE,
    overlap: OVERLAP,
    hasTracking: true,
    refusal: (email) => refusal(email, settings),
    streamOf: (email) => streamOf(email, settings),
    async send(emails, call) {
      const { now = () => performance.now() } = settings;
      const began = now();
      const outcomes: SendOutcome[] = [];
      for (const part of parts(emails)) {
        const isLate = outcomes.length > 0 && now() - began > GO_ON_WITHIN;
        outcomes.push(...(isLate ? part.map(() => NOT_TRIED) : await sendPart(part, call)));
      }
      return outcomes;
    },
    async find(call) {
      const found = await Promise.all(streamsOf(settings).map((stream) => search(stream, call)));
      return new Map(
        found
          .flat()
          .map(({ Metadata: { email = '', copy }, MessageID }) => [
            copyKey(email, copy === undefined ? null : Number(copy)),
            MessageID,
          ]),
      );
    },
    reports: (emailId, messageId) => askForReports(client, emailId, messageId),
  };
}

export function clientOptions({ baseUrl, timeout = TIMEOUT }: PostmarkApi) {
  const { protocol, host, pathname } = new URL(baseUrl);
  return { useHttps: protocol === 'https:', requestHost: host + pathname.replace(/\/$/, ''), timeout };
}

/** The message streams that emails are sent on, each once. */
export function streamsOf({ messageStream, broadcastStream }: PostmarkSettings): string[] {
  return [...new Set([messageStream, broadcastStream])];
}

function streamOf({ marketing }: OutgoingEmail, { messageStream, broadcastStream }: PostmarkSettings): string {
  return marketing ? broadcastStream : messageStream;
}

/** Whether a request about a message stream failed because the server does not have that stream. */
export function isStreamMissing(error: unknown): boolean {
  return error instanceof Errors.PostmarkError && STREAM_MISSING.has(error.code);
}

function refusal(email: OutgoingEmail, settings: PostmarkSettings): string | undefined {
  const count = recipients(email).length;
  if (count > MAX_RECIPIENTS) return `Postmark accepts at most ${MAX_RECIPIENTS} recipients, not ${count}.`;
  const { from, to, cc, bcc, replyTo } = email;
  const fields = Object.entries({ from: [from], to, cc, bcc, reply_to: replyTo });
  const field = fields.find(([, mailboxes]) => mailboxes.some(({ local }) => NO_LOCAL_PART.test(local)));
  if (field) return `Postmark accepts no address with a question mark, as in ${field[0]}.`;
  if (unitsOf(email) <= SURELY_FITS && email.files.length === 0) return undefined;
  const bytes = sizeOf(email, settings);
  return bytes > MAX_BYTES ? `Postmark accepts at most ${MAX_BYTES} bytes, not ${bytes}.` : undefined;
}

function toMessage(email: OutgoingEmail, call: string, settings: PostmarkSettings): Message {
  const { signEmailId } = settings;
  const list = (mailboxes: OutgoingEmail['to']) => mailboxes.map(formatMailbox).join(', ');
  return {
    From: formatMailbox(email.from),
    To: list(email.to),
    Subject: email.subject,
    MessageStream: streamOf(email, settings),
    Headers: [
      { Name: 'Message-ID', Value: email.messageId },
      ...email.headers.map(([name, value]) => ({ Name: name, Value: value })),
    ],
    Metadata: {
      ...{ email: email.id, call },
      ...(signEmailId && { sig: signEmailId(email.id) }),
      ...(email.copy !== null && { copy: String(email.copy) }),
    },
    ...(email.cc.length > 0 && { Cc: list(email.cc) }),
    ...(email.bcc.length > 0 && { Bcc: list(email.bcc) }),
    ...(email.replyTo.length > 0 && { ReplyTo: list(email.replyTo) }),
    ...(email.html !== null && { HtmlBody: trackedHtml(email, email.html) }),
    ...(email.text !== null && { TextBody: email.text }),
    ...(!email.isTracked && { TrackOpens: false, TrackLinks: Models.LinkTrackingOptions.None }),
    ...(email.files.length > 0 && { Attachments: email.files.map(toAttachment) }),
    // Without these fields the settings of the Postmark server apply.
    ...(email.tracking.opens && { TrackOpens: true }),
    ...(email.tracking.clicks && { TrackLinks: Models.LinkTrackingOptions.HtmlOnly }),
  };
}

/** Excludes unsubscribe links from tracking (https://postmarkapp.com/developer/user-guide/tracking-links). */
function trackedHtml({ tracking, unsubscribeUrl }: OutgoingEmail, html: string): string {
  if (!tracking.clicks || unsubscribeUrl === null) return html;
  return markLinks(html, (href) => href.trim() === unsubscribeUrl, 'data-pm-no-track');
}

/** As few requests as their bodies and files allow. */
function parts(emails: readonly OutgoingEmail[]): OutgoingEmail[][] {
  const made: OutgoingEmail[][] = [];
  let bytesLeft = 0;
  for (const email of emails) {
    const bytes = filesOf(email) + bodiesOf(email);
    const part = made.at(-1);
    if (part && bytes <= bytesLeft) part.push(email);
    else {
      made.push([email]);
      bytesLeft = MAX_REQUEST_BYTES;
    }
    bytesLeft -= bytes;
  }
  return made;
}

function unitsOf({ html, text }: OutgoingEmail): number {
  return (html ?? '').length + (text ?? '').length;
}

/** Bytes of the bodies as JSON; of small ones at most so many, since a call of 500 of them fits one request in any case. */
function bodiesOf(email: OutgoingEmail): number {
  const most = unitsOf(email) * MAX_BYTES_PER_UNIT;
  if (most <= MAX_REQUEST_BYTES / MAX_BATCH) return most;
  return Buffer.byteLength(JSON.stringify([email.html, email.text]));
}

/** Base64 needs no escapes, so its length is known without making it. */
function filesOf({ files }: OutgoingEmail): number {
  return files.reduce((sum, { content }) => sum + Math.ceil(content.length / 3) * 4, 0);
}

function toAttachment({ filename, contentType, contentId, content }: OutgoingFile) {
  const id = contentId === null ? null : `cid:${contentId}`;
  return { Name: filename, Content: content.toString('base64'), ContentID: id, ContentType: contentType };
}

/** Bytes of an email as JSON. */
function sizeOf(email: OutgoingEmail, settings: PostmarkSettings): number {
  const bare = { ...email, files: email.files.map((file) => ({ ...file, content: NOTHING })) };
  return filesOf(email) + Buffer.byteLength(JSON.stringify(toMessage(bare, A_CALL, settings)));
}

type Answer = Partial<Models.MessageSendingResponse>;

/** One answer inside HTTP 200. Without a message id the outcome is unknown. */
function classifyAnswer(answer: unknown): SendOutcome {
  const { ErrorCode: code, MessageID: messageId, Message: message, SubmittedAt } = (answer ?? {}) as Answer;
  if (code === 0 && messageId) {
    const acceptedAt = Date.parse(String(SubmittedAt));
    return { kind: 'sent', messageId, ...(!Number.isNaN(acceptedAt) && { acceptedAt }) };
  }
  if (typeof code === 'number' && code !== 0) return classifyCode(code, message ?? '');
  return unclearAnswer('Postmark');
}

const SUPPRESSED = 'Postmark no longer sends to this address: it is on its list of inactive addresses.';
/** Postmark's message about an accepted email with inactive recipients. */
const NOT_TO_ALL = /will not deliver to these inactive addresses:(.*)/s;

/** Adds the recipients to whom Postmark will not deliver what it took: its message names them. */
function withRefused(email: OutgoingEmail, answer: unknown, outcome: SendOutcome): SendOutcome {
  if (outcome.kind !== 'sent') return outcome;
  const { Message: message } = answer as Answer;
  const named = typeof message === 'string' && NOT_TO_ALL.exec(message)?.[1];
  if (!named) return outcome;
  const words = new Set(
    named
      .toLowerCase()
      .split(/[\s,;<>"]+/)
      .flatMap((word) => [word, word.replace(/\.$/, '')]),
  );
  const refused = recipients(email)
    .filter(({ address }) => words.has(address.toLowerCase()))
    .map(({ address }) => ({ recipient: address, reason: 'provider_suppressed' as const, detail: SUPPRESSED }));
  return refused.length > 0 ? { ...outcome, refused } : outcome;
}

/**
 * The outcome of a whole call for each of its emails. With several emails, neither acceptance nor refusal of the call applies
 * to each of them: refused emails are sent again one by one.
 */
function forAll(emails: readonly OutgoingEmail[], outcome: SendOutcome): SendOutcome[] {
  return emails.map(() => {
    if (emails.length === 1) return outcome;
    if (outcome.kind === 'sent') return unclearAnswer('Postmark');
    const refused = outcome.kind === 'rejected' || outcome.kind === 'bounced';
    return refused ? { kind: 'busy', detail: outcome.detail, alone: true } : outcome;
  });
}

function classifyFailure(error: unknown, trace: Trace): SendOutcome {
  // Anything but an answer without a failure on the wire broke off while the answer was read.
  if (trace.failure || !(error instanceof Errors.PostmarkError) || error.statusCode === 0) {
    return classifyUnanswered('Postmark', trace);
  }
  return classifyStatus(error.statusCode, error.code, error.message, trace.retryAfter);
}

function classifyStatus(status: number, code: number, message: string, retryAfter?: number): SendOutcome {
  const answer = `Postmark answered ${status}: ${message}`;
  switch (status) {
    case 413:
      return { kind: 'rejected', detail: answer };
    case 422:
      // Without a code it is not Postmark who speaks.
      return code === 0 ? { kind: 'account', detail: answer } : classifyCode(code, message);
    case 429:
      return { kind: 'busy', detail: answer, ...(retryAfter !== undefined && { after: retryAfter }) };
    case 503:
      // With Retry-After, the service was not available; without, it may have been lost in the middle of the call.
      return retryAfter === undefined
        ? { kind: 'unknown', detail: answer }
        : { kind: 'busy', detail: answer, after: retryAfter };
    default:
      // According to Postmark a message is "usually" lost with 500, so it is reconciled. 408, 502 and 504 come from a proxy in
      // between; other 4xx concern the account.
      return status === 408 || status >= 500
        ? { kind: 'unknown', detail: answer }
        : { kind: 'account', detail: answer };
  }
}

/** https://postmarkapp.com/developer/api/overview#error-codes. */
const INACTIVE_RECIPIENTS = 406;
const MAINTENANCE = 100;
/** The message stream does not exist on the server; 1226 answers requests about a stream, 1235 emails on one. */
const STREAM_MISSING = new Set([1226, 1235]);
/** The message stream does not exist or cannot send. */
const STREAM = new Set([1235, 1236]);
const ACCOUNT = new Set([10, 1480, ...STREAM]);
/** In a range of codes that are mostly about the account, those about the message. */
const ACCOUNT_RANGE = { from: 400, to: 499, aboutMessage: new Set([402, 403, 409, 410, 411]) };

/** A code that is not listed is about the account within that range, where a refusal for good would lose mail; else about the message. */
function isAboutAccount(code: number): boolean {
  const { from, to, aboutMessage } = ACCOUNT_RANGE;
  return ACCOUNT.has(code) || (code >= from && code <= to && !aboutMessage.has(code));
}

/** Codes about the account as a whole; others may be about one sender, such as 400 (not confirmed), or not be known yet. */
const WHOLE_ACCOUNT = new Set([10, 405, 412, 413, 1480]);

function classifyCode(code: number, message: string): SendOutcome {
  const detail = `Postmark refused it: ${message} (ErrorCode ${code})`;
  if (code === INACTIVE_RECIPIENTS) return { kind: 'bounced', reason: 'provider_suppressed', detail };
  if (code === MAINTENANCE) return { kind: 'busy', detail };
  if (!isAboutAccount(code)) return { kind: 'rejected', detail };
  if (STREAM.has(code)) return { kind: 'account', detail, scope: 'stream' };
  return { kind: 'account', detail, ...(!WHOLE_ACCOUNT.has(code) && { scope: 'sender' as const }) };
}
