import { type Head, type InboxMessage, type Received, tailOf } from '../inbox/message.ts';
import { magicOf, type ReportKind, type Step } from '../magic.ts';
import { parseAddress } from './addresses.ts';
import { postmarkTime } from './time.ts';

/** A future report about one recipient. */
export interface DueReport {
  readonly kind: ReportKind;
  readonly recipient: string;
  /** The recipient's position among those of the message. */
  readonly place: number;
  readonly step: Step;
  /** Unix milliseconds. Depends only on the message, so a restart changes no event. */
  readonly at: number;
}

/** The fields of a message in reports. */
export interface ReportedMessage {
  readonly head: Head;
  readonly from: string;
  readonly subject: string;
  /** The target of a click. */
  readonly link: string;
}

/** Replies of receiving servers. */
const ACCEPTED_REPLY = 'smtp;250 2.0.0 Ok: queued';
const DEFERRED_REPLY = 'smtp;451 4.7.1 Greylisting in action, please come back later';

const EXAMPLE_LINK = 'https://example.com/';
const HREF = /href\s{0,9}=\s{0,9}["']?(https?:\/\/[^"'\s<>]+)/i;

/** Prepares a message for reports. A click's target is the first link of the HTML, or an example. */
export function toReported({ head, message }: Received<InboxMessage>): ReportedMessage {
  const from = parseAddress(message.from)?.Email ?? message.from;
  const link = HREF.exec(message.html ?? '')?.[1]?.replaceAll('&amp;', '&') ?? EXAMPLE_LINK;
  return { head, from, subject: message.subject, link };
}

/** Returns all reports about a message. @param after milliseconds between a message and the first report about it */
export function reportsOf(head: Head, after: number): DueReport[] {
  return head.recipients.flatMap((recipient, place) =>
    magicOf(recipient).reports.map(({ kind, step }) => {
      return { kind, recipient, place, step, at: head.received_at + after * step };
    }),
  );
}

/** Returns the record that Postmark posts, https://postmarkapp.com/developer/webhooks/webhooks-overview. */
export function webhookRecord(reported: ReportedMessage, due: DueReport): Record<string, unknown> {
  const { head, link } = reported;
  const common = {
    MessageStream: head.stream,
    MessageID: head.id,
    Recipient: due.recipient,
    Metadata: head.metadata,
    ...(head.tag !== null && { Tag: head.tag }),
  };
  const time = postmarkTime(due.at);
  switch (due.kind) {
    case 'Delivery':
      return { RecordType: 'Delivery', ServerID: SERVER, ...common, DeliveredAt: time, Details: ACCEPTED_REPLY };
    case 'Open':
      return { RecordType: 'Open', FirstOpen: true, ...common, ReceivedAt: time, ReadSeconds: 5, ...READER };
    case 'Click':
      return { RecordType: 'Click', ClickLocation: 'HTML', ...common, ReceivedAt: time, OriginalLink: link, ...READER };
    case 'Bounce':
    case 'SpamComplaint':
    case 'Transient':
      return { ...bounceRecord(reported, due), Metadata: head.metadata };
  }
}

const SERVER = 1;
/** The client of opens and clicks. */
const READER = {
  UserAgent: 'Mozilla/5.0 (Simulated) Simulator/1.0',
  Platform: 'Desktop',
  OS: { Name: 'Simulated', Family: 'Simulated', Company: '' },
  Client: { Name: 'Simulator 1.0', Family: 'Simulator', Company: '' },
  Geo: {
    IP: '127.0.0.1',
    City: '',
    Country: '',
    CountryISOCode: '',
    Region: '',
    RegionISOCode: '',
    Zip: '',
    Coords: '',
  },
};

/** Returns a bounce, delay or complaint in the format of https://postmarkapp.com/developer/api/bounce-api. */
export function bounceRecord({ head, from, subject }: ReportedMessage, due: DueReport): Record<string, unknown> {
  const { kind, recipient, place, at } = due;
  return {
    RecordType: kind === 'SpamComplaint' ? 'SpamComplaint' : 'Bounce',
    ID: bounceId(head.id, place),
    ...explanation(kind, recipient),
    ...(head.tag !== null && { Tag: head.tag }),
    MessageID: head.id,
    ServerID: SERVER,
    MessageStream: head.stream,
    Email: recipient,
    From: from,
    BouncedAt: postmarkTime(at),
    DumpAvailable: false,
    CanActivate: kind === 'Bounce',
    Subject: subject,
  };
}

function explanation(kind: ReportKind, recipient: string): Record<string, unknown> {
  if (kind === 'SpamComplaint') {
    const Description = 'The subscriber explicitly marked this message as spam.';
    return { Type: kind, TypeCode: 100001, Name: 'Spam complaint', Description, Details: '', Inactive: true };
  }
  const { bounce } = magicOf(recipient);
  if (bounce) {
    const { type, typeCode, name, description, reply, inactive } = bounce;
    const text = { Description: description, Details: `smtp;${reply}` };
    return { Type: type, TypeCode: typeCode, Name: name, ...text, Inactive: inactive };
  }
  const Description = 'The server could not temporarily deliver the message.';
  const text = { Name: 'Message delayed/Undeliverable', Description, Details: DEFERRED_REPLY };
  return { Type: 'Transient', TypeCode: 2, ...text, Inactive: false };
}

/** Returns a report in the format of a message's details, https://postmarkapp.com/developer/api/messages-api. */
export function messageEvent(
  { head, link }: ReportedMessage,
  { kind, recipient, place, at }: DueReport,
): Record<string, unknown> {
  const event = { Recipient: recipient, ReceivedAt: postmarkTime(at) };
  const BounceID = bounceId(head.id, place);
  const server = {
    DestinationServer: `mx.${recipient.slice(recipient.lastIndexOf('@') + 1)}`,
    DestinationIP: '127.0.0.1',
  };
  switch (kind) {
    case 'Delivery':
      return { ...event, Type: 'Delivered', Details: { DeliveryMessage: ACCEPTED_REPLY, ...server } };
    case 'Transient':
      return { ...event, Type: 'Transient', Details: { DeliveryMessage: DEFERRED_REPLY, ...server } };
    case 'Open':
      return { ...event, Type: 'Opened', Details: { Summary: `Email opened with ${READER.UserAgent}` } };
    case 'Click':
      return {
        ...event,
        Type: 'LinkClicked',
        Details: { Summary: `Tracked ${link}`, Link: link, ClickLocation: 'HTML' },
      };
    case 'Bounce':
      return { ...event, Type: 'Bounced', Details: { Summary: `smtp;${magicOf(recipient).bounce?.reply}`, BounceID } };
    case 'SpamComplaint':
      return { ...event, Type: 'SpamComplaint', Details: { Summary: 'Marked as spam', BounceID } };
  }
}

/** Bounce ids per message, more than it has recipients. The bounces of one message have neighboring ids. */
const BOUNCE_IDS_PER_MESSAGE = 64;

/** Derives a bounce id from 44 bits of the message id and the recipient's position, so that the bounce can be looked up. */
function bounceId(messageId: string, place: number): number {
  return parseInt(tailOf(messageId), 16) * BOUNCE_IDS_PER_MESSAGE + place;
}

/** Returns the message and recipient of a bounce id. */
export function readBounceId(id: number): { readonly tail: string; readonly place: number } {
  return {
    tail: Math.floor(id / BOUNCE_IDS_PER_MESSAGE)
      .toString(16)
      .padStart(11, '0'),
    place: id % BOUNCE_IDS_PER_MESSAGE,
  };
}
