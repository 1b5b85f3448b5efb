import { hash } from 'node:crypto';
import { isMachineAgent } from '../../domain/email/machines.ts';
import type { Feedback, ProviderSuppression, ReportEvidence } from '../../domain/email/feedback.ts';
import { type Fields, isObject, isText } from '../json-fields.ts';
import { meaningOf } from './bounces.ts';

export type Callback =
  | { readonly kind: 'feedback'; readonly feedback: Feedback }
  /** Postmark has added an address to its suppression list, or removed it. */
  | { readonly kind: 'suppression'; readonly suppression: ProviderSuppression }
  /** It concerns no email of ours, or changes nothing. */
  | { readonly kind: 'none' };

const NO_EFFECT: Callback = { kind: 'none' };

/**
 * Reads a record that Postmark posts to its webhook (https://postmarkapp.com/developer/webhooks/webhooks-overview).
 * Its metadata contains our email id with our signature, so a callback is accepted even before the acceptance is recorded.
 */
export function parsePostmarkCallback(
  body: unknown,
  isSignature: (emailId: string, signature: string) => boolean,
  broadcastStream: string | null,
): Callback {
  if (!isObject(body)) return NO_EFFECT;
  const { email: emailId, sig: signature } = isObject(body['Metadata']) ? body['Metadata'] : {};
  if (!isText(emailId)) return NO_EFFECT;
  const isSigned = isText(signature) && isSignature(emailId, signature);
  const evidence = { messageId: isText(body['MessageID']) ? body['MessageID'] : '', isSigned };
  if (body['RecordType'] === 'SubscriptionChange') {
    return readSubscription(
      emailId,
      body,
      evidence,
      broadcastStream !== null && body['MessageStream'] === broadcastStream,
    );
  }
  const feedback = readFeedback(emailId, body);
  return feedback ? { kind: 'feedback', feedback: Object.assign({}, feedback, { evidence }) } : NO_EFFECT;
}

function readFeedback(emailId: string, record: Fields): Feedback | undefined {
  const { RecordType, MessageID: messageId, Recipient: recipient } = record;
  if (RecordType === 'Bounce' || RecordType === 'SpamComplaint') return readBounce(emailId, record);
  if (!isText(messageId) || !isText(recipient)) return undefined;
  switch (RecordType) {
    case 'Delivery':
      return toFeedback({ emailId, messageId, recipient, change: 'delivered', at: record['DeliveredAt'] });
    case 'Open':
      return attributeToMachine(
        record['UserAgent'],
        toFeedback({ emailId, messageId, recipient, change: 'opened', at: record['ReceivedAt'] }),
      );
    case 'Click': {
      const { ReceivedAt: at, OriginalLink: link, UserAgent: agent } = record;
      return attributeToMachine(agent, toFeedback({ emailId, messageId, recipient, change: 'clicked', at, link }));
    }
    default:
      return undefined;
  }
}

const BY_MACHINE = { opened: 'opened_by_machine', clicked: 'clicked_by_machine' } as const;

/**
 * Attributes an open or click to a machine by its user agent. Its key stays that of an open or click by a person: the list of a
 * message's events has no user agent of a click, and its entry must be recognized as the same report.
 */
export function attributeToMachine(userAgent: unknown, report: Feedback | undefined): Feedback | undefined {
  if (!report || !isText(userAgent) || !isMachineAgent(userAgent)) return report;
  return { ...report, change: BY_MACHINE[report.change as keyof typeof BY_MACHINE] };
}

/**
 * Reads a bounce or complaint from a callback or from Postmark's API.
 * @returns undefined if it changes nothing, or a required field is missing
 */
export function readBounce(emailId: string, record: Fields): Feedback | undefined {
  const { MessageID: messageId, Email: recipient, ID: id, BouncedAt: at } = record;
  if (!isText(messageId) || !isText(recipient)) return undefined;
  const meaning = meaningOf({
    type: record['RecordType'] === 'SpamComplaint' ? 'SpamComplaint' : textOf(record['Type']),
    details: textOf(record['Details']),
    description: textOf(record['Description']),
    isInactive: typeof record['Inactive'] === 'boolean' ? record['Inactive'] : undefined,
  });
  if (!meaning) return undefined;
  const { change } = meaning;
  // A delay has no id in the list of a message's events, only a time.
  if (change === 'delivery_delayed') return toFeedback({ emailId, messageId, recipient, change, at });
  if (!Number.isSafeInteger(id) && !isText(id)) return undefined;
  return { emailId, recipient, dedupeKey: keyOf('bounce', String(id)), ...meaning };
}

/** An event of one recipient of a message. */
export interface MessageEvent extends Pick<Feedback, 'emailId' | 'change' | 'recipient'> {
  readonly messageId: string;
  readonly at: unknown;
  readonly link?: unknown;
}

/** @returns undefined if its time is malformed */
export function toFeedback({ messageId, at, link, ...of }: MessageEvent): Feedback | undefined {
  const time = Date.parse(textOf(at));
  if (Number.isNaN(time)) return undefined;
  // A callback's time is more precise than in the list of a message's events; both must be the same report.
  const second = String(Math.floor(time / 1_000));
  const words = [of.change, messageId, of.recipient.toLowerCase(), second];
  if (!isText(link)) return Object.assign({}, of, { dedupeKey: keyOf(...words) });
  return Object.assign({}, of, { link, dedupeKey: keyOf(...words, link) });
}

/** Longer keys are hashed: an index accepts about 2,700 bytes, and a key may contain a long link. */
const MAX_KEY_LENGTH = 300;

function keyOf(...words: string[]): string {
  const key = words.join(' ');
  if (key.length <= MAX_KEY_LENGTH) return key;
  return `${words[0]} ${hash('sha256', key)}`;
}

/** https://postmarkapp.com/developer/webhooks/subscription-change-webhook */
function readSubscription(emailId: string, record: Fields, evidence: ReportEvidence, isMarketing: boolean): Callback {
  const { Recipient: recipient, ChangedAt: at, SuppressSending: suppress, SuppressionReason: reason } = record;
  if (!isText(recipient)) return NO_EFFECT;
  const change = { emailId, recipient, isMarketing, evidence };
  if (suppress === false) return { kind: 'suppression', suppression: { ...change, origin: null } };
  if (suppress !== true) return NO_EFFECT;
  if (reason === 'ManualSuppression' && record['Origin'] === 'Recipient') {
    const { messageId } = evidence;
    const feedback = toFeedback({ emailId, change: 'unsubscribed', messageId, recipient, at });
    return feedback ? { kind: 'feedback', feedback: { ...feedback, evidence } } : NO_EFFECT;
  }
  // Postmark also reports the bounce or complaint itself, with its reason. The first report creates the entry.
  const provider = reason === 'ManualSuppression' && isMarketing ? 'unsubscribe' : 'provider';
  const origin = reason === 'SpamComplaint' ? 'complaint' : provider;
  return { kind: 'suppression', suppression: { ...change, origin } };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
