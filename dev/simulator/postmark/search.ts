import type { FastifyInstance } from 'fastify';
import type { Switches } from '../behaviour.ts';
import type { StoredMessage, Inbox } from '../inbox/inbox.ts';
import { BOUNCES, type Head, type InboxMessage, KEY } from '../inbox/message.ts';
import { DEFAULT_STREAM } from './accept.ts';
import { parseAddress } from './addresses.ts';
import { CODE, Refusal } from './errors.ts';
import { bounceRecord, messageEvent, readBounceId, reportsOf, toReported } from './reports.ts';
import { postmarkTime } from './time.ts';

export interface SearchParts {
  readonly inbox: Inbox;
  readonly switches: Switches;
  /** Milliseconds between a message and the first report about it. */
  readonly reportAfter: number;
}

const MAX_PAGE_SIZE = 500;
/** Postmark's search does not return results beyond this position. */
const MAX_POSITION = 10_000;

/**
 * `GET /messages/outbound`, `GET /messages/outbound/:id/details` and `GET /bounces/:id`,
 * https://postmarkapp.com/developer/api/messages-api and …/bounce-api. An unknown filter is an error and never ignored.
 */
export function searchRoutes(app: FastifyInstance, { inbox, switches, reportAfter }: SearchParts): void {
  app.get('/messages/outbound', (request) => {
    const { count, offset, keys } = readQuery(request.query as Query);
    const visible = Date.now() - switches.now.search_lag_ms;
    const page: StoredMessage[] = [];
    let total = 0;
    for (const found of inbox.find(KEY.provider('postmark'), ...keys)) {
      if (found.receivedAt > visible) continue;
      if (total >= offset && page.length < count) page.push(found);
      total++;
    }
    return { TotalCount: total, Messages: page.map((found) => summary(found.head(), parseMessage(found))) };
  });

  app.get<{ Params: { id: string } }>('/messages/outbound/:id/details', ({ params }) => {
    const found = inbox.get(params.id);
    const head = found?.head();
    if (found === undefined || head?.provider !== 'postmark')
      throw new Refusal(422, CODE.messageNotFound, 'This message was not found.');
    const message = parseMessage(found);
    const reported = toReported({ head, message });
    const happened = reportsOf(head, reportAfter).filter(({ at }) => at <= Date.now());
    return {
      ...summary(head, message),
      TextBody: message.text ?? '',
      HtmlBody: message.html ?? '',
      MessageEvents: happened.map((due) => messageEvent(reported, due)),
    };
  });

  app.get<{ Params: { id: string } }>('/bounces/:id', ({ params }) => {
    const { tail, place } = readBounceId(Number(params.id));
    for (const found of inbox.find(KEY.bounces(tail))) {
      const head = found.head();
      const due = reportsOf(head, reportAfter).find((report) => report.place === place && BOUNCES.has(report.kind));
      if (due && due.at <= Date.now()) return bounceRecord(toReported({ head, message: parseMessage(found) }), due);
    }
    throw new Refusal(422, CODE.bounceNotFound, 'The bounce was not found.');
  });
}

type Query = Readonly<Record<string, string | string[]>>;

function readQuery(query: Query): { count: number; offset: number; keys: string[] } {
  const count = wholeNumber(query, 'count', 1, MAX_PAGE_SIZE);
  const offset = wholeNumber(query, 'offset', 0, MAX_POSITION);
  if (count + offset > MAX_POSITION) throw badQuery(`count and offset must be at most ${MAX_POSITION} together`);
  const filters = Object.entries({ messagestream: DEFAULT_STREAM, ...query }).filter(
    ([name]) => name !== 'count' && name !== 'offset',
  );
  if (filters.filter(([name]) => name.startsWith('metadata_')).length > 1)
    throw badQuery('only one metadata field can be asked for');
  return { count, offset, keys: filters.map(([name, value]) => filterKey(name, value)) };
}

function filterKey(name: string, value: string | string[]): string {
  if (typeof value !== 'string') throw badQuery(`${name} must be given once`);
  if (name === 'recipient') return KEY.recipient(value);
  if (name === 'tag') return KEY.tag(value);
  if (name === 'messagestream') return KEY.stream(value);
  if (name.startsWith('metadata_')) return KEY.metadata(name.slice('metadata_'.length), value);
  throw badQuery(`the simulator cannot filter by ${name}`);
}

function wholeNumber(query: Query, name: string, min: number, max: number): number {
  const text = query[name];
  const value = Number(text);
  if (typeof text !== 'string' || !/^\d+$/.test(text) || value < min || value > max)
    throw badQuery(`${name} must be a whole number from ${min} to ${max}`);
  return value;
}

function badQuery(problem: string): Refusal {
  return new Refusal(422, CODE.badQuery, `Messages query: ${problem}.`);
}

function parseMessage(found: StoredMessage): InboxMessage {
  return JSON.parse(found.message()) as InboxMessage;
}

/** Formats a message. Opens and clicks are never tracked here, and no message is of a sandbox. */
function summary(head: Head, message: InboxMessage): Record<string, unknown> {
  return {
    Tag: head.tag ?? '',
    MessageID: head.id,
    MessageStream: head.stream,
    To: message.to.map(parseAddress),
    Cc: message.cc.map(parseAddress),
    Bcc: message.bcc.map(parseAddress),
    Recipients: head.recipients,
    ReceivedAt: postmarkTime(head.received_at),
    From: message.from,
    Subject: message.subject,
    Attachments: message.attachments.map(({ filename }) => filename),
    Status: 'Sent',
    TrackOpens: false,
    TrackLinks: 'None',
    Metadata: head.metadata,
    Sandboxed: false,
  };
}
