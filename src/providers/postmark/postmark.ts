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
import { fetchReports } from './reports.ts';

export interface PostmarkApi {
  readonly baseUrl: string;
  /** Deadline of a call; by default 30, and 10 for calls about domains. */
  readonly timeoutSeconds?: number;
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
/** Limits one message as JSON. */
const MAX_MESSAGE_BYTES = 10 * 1_048_576;
/** Limits the bodies (JSON) and files (base64) of one request, which is in memory as a whole. Postmark allows 50 MB. */
const MAX_REQUEST_BYTES = 30 * 1_048_576;
/** JSON writes one UTF-16 unit in at most six bytes. */
const MAX_BYTES_PER_UNIT = 6;
/** Deadline for starting further requests of one call: the copies of an email with files may need many. */
const CALL_DEADLINE_MS = 20_000;
const NOT_TRIED_OUTCOME: SendOutcome = {
  kind: 'busy',
  detail: 'The call ended before this copy was sent, because of its large attachments.',
};
/** UTF-16 units of both bodies up to which an email without files cannot exceed MAX_MESSAGE_BYTES. */
const MAX_UNMEASURED_UNITS = 1_000_000;
const EMPTY = Buffer.alloc(0);
/** A call id to measure messages with: all call ids have this length. */
const SAMPLE_CALL = 'call_'.padEnd(31, '0');
/** Identifies all calls that contained this email. */
const EMAIL_ID = /^em_/;
/** Postmark's expression for addresses (https://postmarkapp.com/support/article/1180) lacks this character. */
const NO_LOCAL_PART = /\?/;
/** Shorter than the SDK's own 180 s, for which an activity slot would be occupied while Postmark hangs. */
const DEFAULT_TIMEOUT_SECONDS = 30;

export function postmark(settings: PostmarkSettings): EmailProvider {
  const client = new ServerClient(settings.serverToken, { ...clientOptions(settings), fetch: tracedFetch });

  async function post(messages: Message[]): Promise<unknown> {
    const [single] = messages;
    return single && messages.length === 1 ? [await client.sendEmail(single)] : client.sendEmailBatch(messages);
  }

  async function sendPart(emails: readonly OutgoingEmail[], call: string): Promise<SendOutcome[]> {
    const { trace, result } = await traced(() => post(emails.map((email) => toMessage(email, call, settings))));
    if (result.status === 'rejected') return toAllOutcomes(emails, classifyFailure(result.reason, trace));
    const { value } = result;
    const hasAnswerForEach = Array.isArray(value) && value.length === emails.length;
    return hasAnswerForEach
      ? emails.map((email, i) => withRefused(email, value[i], classifyAnswer(value[i])))
      : toAllOutcomes(emails, classifyAnswer(value));
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
      const startedAt = now();
      const outcomes: SendOutcome[] = [];
      for (const part of splitRequests(emails)) {
        const isLate = outcomes.length > 0 && now() - startedAt > CALL_DEADLINE_MS;
        outcomes.push(...(isLate ? part.map(() => NOT_TRIED_OUTCOME) : await sendPart(part, call)));
      }
      return outcomes;
    },
    async find(call) {
      const messages = await Promise.all(streamsOf(settings).map((stream) => search(stream, call)));
      return new Map(
        messages
          .flat()
          .map(({ Metadata: { email = '', copy }, MessageID }) => [
            copyKey(email, copy === undefined ? null : Number(copy)),
            MessageID,
          ]),
      );
    },
    reports: (emailId, messageId) => fetchReports(client, emailId, messageId),
  };
}

export function clientOptions({ baseUrl, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS }: PostmarkApi) {
  const { protocol, host, pathname } = new URL(baseUrl);
  return { useHttps: protocol === 'https:', requestHost: host + pathname.replace(/\/$/, ''), timeout: timeoutSeconds };
}

/** The message streams that emails are sent on, each once. */
export function streamsOf({ messageStream, broadcastStream }: PostmarkSettings): string[] {
  return [...new Set([messageStream, broadcastStream])];
}

function streamOf({ marketing }: OutgoingEmail, { messageStream, broadcastStream }: PostmarkSettings): string {
  return marketing ? broadcastStream : messageStream;
}

/** Returns true if a request about a message stream failed because the server does not have that stream. */
export function isStreamMissing(error: unknown): boolean {
  return error instanceof Errors.PostmarkError && STREAM_MISSING.has(error.code);
}

function refusal(email: OutgoingEmail, settings: PostmarkSettings): string | undefined {
  if (email.envelope !== null)
    return 'Postmark sends an email to all of its recipients, not only to those that are left.';
  const count = recipients(email).length;
  if (count > MAX_RECIPIENTS) return `Postmark accepts at most ${MAX_RECIPIENTS} recipients, not ${count}.`;
  const { from, to, cc, bcc, replyTo } = email;
  const fields = Object.entries({ from: [from], to, cc, bcc, reply_to: replyTo });
  const field = fields.find(([, mailboxes]) => mailboxes.some(({ local }) => NO_LOCAL_PART.test(local)));
  if (field) return `Postmark accepts no address with a question mark, as in ${field[0]}.`;
  if (unitsOf(email) <= MAX_UNMEASURED_UNITS && email.files.length === 0) return undefined;
  const bytes = sizeOf(email, settings);
  return bytes > MAX_MESSAGE_BYTES ? `Postmark accepts at most ${MAX_MESSAGE_BYTES} bytes, not ${bytes}.` : undefined;
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
      email: email.id,
      call,
      ...(signEmailId && { sig: signEmailId(email.id) }),
      ...(email.copy !== null && { copy: String(email.copy) }),
    },
    ...(email.cc.length > 0 && { Cc: list(email.cc) }),
    ...(email.bcc.length > 0 && { Bcc: list(email.bcc) }),
    ...(email.replyTo.length > 0 && { ReplyTo: list(email.replyTo) }),
    ...(email.html !== null && { HtmlBody: excludeFromTracking(email, email.html) }),
    ...(email.text !== null && { TextBody: email.text }),
    ...(!email.isTracked && { TrackOpens: false, TrackLinks: Models.LinkTrackingOptions.None }),
    ...(email.files.length > 0 && { Attachments: email.files.map(toAttachment) }),
    // Without these fields the settings of the Postmark server apply.
    ...(email.tracking.opens && { TrackOpens: true }),
    ...(email.tracking.clicks && { TrackLinks: Models.LinkTrackingOptions.HtmlOnly }),
  };
}

/**
 * Excludes unsubscribe links from tracking (https://postmarkapp.com/developer/user-guide/tracking-links), also if the domain has it
 * off, since the Postmark server may have it on.
 */
function excludeFromTracking({ unsubscribeUrl }: OutgoingEmail, html: string): string {
  if (unsubscribeUrl === null) return html;
  return markLinks(html, (href) => href.trim() === unsubscribeUrl, 'data-pm-no-track');
}

/** Splits emails into as few requests as their bodies and files allow. */
function splitRequests(emails: readonly OutgoingEmail[]): OutgoingEmail[][] {
  const requests: OutgoingEmail[][] = [];
  let bytesLeft = 0;
  for (const email of emails) {
    const bytes = filesOf(email) + bodiesOf(email);
    const request = requests.at(-1);
    if (request && bytes <= bytesLeft) request.push(email);
    else {
      requests.push([email]);
      bytesLeft = MAX_REQUEST_BYTES;
    }
    bytesLeft -= bytes;
  }
  return requests;
}

function unitsOf({ html, text }: OutgoingEmail): number {
  return (html ?? '').length + (text ?? '').length;
}

/** Returns the bytes of the bodies as JSON; for small ones an upper bound, since 500 of them fit into one request anyway. */
function bodiesOf(email: OutgoingEmail): number {
  const maxBytes = unitsOf(email) * MAX_BYTES_PER_UNIT;
  if (maxBytes <= MAX_REQUEST_BYTES / MAX_BATCH) return maxBytes;
  return Buffer.byteLength(JSON.stringify([email.html, email.text]));
}

/** Returns the bytes of the files in base64, which needs no escapes in JSON. */
function filesOf({ files }: OutgoingEmail): number {
  return files.reduce((sum, { content }) => sum + Math.ceil(content.length / 3) * 4, 0);
}

function toAttachment({ filename, contentType, contentId, content }: OutgoingFile) {
  const id = contentId === null ? null : `cid:${contentId}`;
  return { Name: filename, Content: content.toString('base64'), ContentID: id, ContentType: contentType };
}

/** Returns the bytes of an email as JSON. */
function sizeOf(email: OutgoingEmail, settings: PostmarkSettings): number {
  const bare = { ...email, files: email.files.map((file) => ({ ...file, content: EMPTY })) };
  return filesOf(email) + Buffer.byteLength(JSON.stringify(toMessage(bare, SAMPLE_CALL, settings)));
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

const SUPPRESSED_DETAIL = 'Postmark no longer sends to this address: it is on its list of inactive addresses.';
/** Postmark's message about an accepted email with inactive recipients. */
const INACTIVE_ADDRESSES = /will not deliver to these inactive addresses:(.*)/s;

/** Adds the recipients to whom Postmark will not deliver an accepted email; its message names them. */
function withRefused(email: OutgoingEmail, answer: unknown, outcome: SendOutcome): SendOutcome {
  if (outcome.kind !== 'sent') return outcome;
  const { Message: message } = answer as Answer;
  const named = typeof message === 'string' && INACTIVE_ADDRESSES.exec(message)?.[1];
  if (!named) return outcome;
  const words = new Set(
    named
      .toLowerCase()
      .split(/[\s,;<>"]+/)
      .flatMap((word) => [word, word.replace(/\.$/, '')]),
  );
  const refused = recipients(email)
    .filter(({ address }) => words.has(address.toLowerCase()))
    .map(({ address }) => ({ recipient: address, reason: 'provider_suppressed' as const, detail: SUPPRESSED_DETAIL }));
  return refused.length > 0 ? { ...outcome, refused } : outcome;
}

/**
 * The outcome of a whole call for each of its emails. With several emails, neither acceptance nor refusal of the call applies
 * to each of them: refused emails are sent again one by one.
 */
function toAllOutcomes(emails: readonly OutgoingEmail[], outcome: SendOutcome): SendOutcome[] {
  return emails.map(() => {
    if (emails.length === 1) return outcome;
    if (outcome.kind === 'sent') return unclearAnswer('Postmark');
    const refused = outcome.kind === 'rejected' || outcome.kind === 'bounced';
    return refused ? { kind: 'busy', detail: outcome.detail, alone: true } : outcome;
  });
}

function classifyFailure(error: unknown, trace: Trace): SendOutcome {
  // Without a complete response, the outcome depends on how far the request came.
  if (trace.failure || !(error instanceof Errors.PostmarkError) || error.statusCode === 0) {
    return classifyUnanswered('Postmark', trace);
  }
  return classifyStatus(error.statusCode, error.code, error.message, trace.retryAfterMs);
}

function classifyStatus(status: number, code: number, message: string, retryAfterMs?: number): SendOutcome {
  const answer = `Postmark answered ${status}: ${message}`;
  switch (status) {
    case 413:
      return { kind: 'rejected', detail: answer };
    case 422:
      // A response without a code is not Postmark's own.
      return code === 0 ? unprovenRefusal(answer) : classifyCode(code, message);
    case 429:
      return { kind: 'busy', detail: answer, ...(retryAfterMs !== undefined && { afterMs: retryAfterMs }) };
    case 503:
      // With Retry-After, the service was not available; without, it may have been lost in the middle of the call.
      return retryAfterMs === undefined
        ? { kind: 'unknown', detail: answer }
        : { kind: 'busy', detail: answer, afterMs: retryAfterMs };
    default:
      // According to Postmark a message is "usually" lost with 500, so it is reconciled. 408, 502 and 504 come from a proxy in
      // between; other 4xx concern the account.
      if (status === 408 || status >= 500) return { kind: 'unknown', detail: answer };
      return WHOLE_ACCOUNT.has(code) ? { kind: 'account', detail: answer } : unprovenRefusal(answer);
  }
}

/** Without a code of Postmark's for the account, a proxy or firewall may have refused this one message. */
function unprovenRefusal(detail: string): SendOutcome {
  return { kind: 'account', detail, scope: 'organization' };
}

/** https://postmarkapp.com/developer/api/overview#error-codes. */
const INACTIVE_RECIPIENTS = 406;
const MAINTENANCE = 100;
/** The message stream does not exist on the server; 1226 answers requests about a stream, 1235 emails on one. */
const STREAM_MISSING = new Set([1226, 1235]);
/** The message stream does not exist or cannot send. */
const STREAM = new Set([1235, 1236]);
const ACCOUNT = new Set([10, 1480, ...STREAM]);
/** Most codes of this range concern the account; the listed ones concern the message. */
const ACCOUNT_RANGE = { from: 400, to: 499, aboutMessage: new Set([402, 403, 409, 410, 411]) };

/** Classifies unlisted codes of that range as about the account, because a permanent refusal would lose mail. */
function isAboutAccount(code: number): boolean {
  const { from, to, aboutMessage } = ACCOUNT_RANGE;
  return ACCOUNT.has(code) || (code >= from && code <= to && !aboutMessage.has(code));
}

/** Codes about the account as a whole. Others may concern one sender, such as 400 (not confirmed), or be new. */
const WHOLE_ACCOUNT = new Set([10, 405, 412, 413, 1480]);

function classifyCode(code: number, message: string): SendOutcome {
  const detail = `Postmark refused it: ${message} (ErrorCode ${code})`;
  if (code === INACTIVE_RECIPIENTS) return { kind: 'bounced', reason: 'provider_suppressed', detail };
  if (code === MAINTENANCE) return { kind: 'busy', detail };
  if (!isAboutAccount(code)) return { kind: 'rejected', detail };
  if (STREAM.has(code)) return { kind: 'account', detail, scope: 'stream' };
  return { kind: 'account', detail, ...(!WHOLE_ACCOUNT.has(code) && { scope: 'sender' as const }) };
}
