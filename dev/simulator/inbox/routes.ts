import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type StoredMessage, type Inbox } from './inbox.ts';
import { type InboxChat, type InboxMessage, KEY } from './message.ts';
import { contentSecurityPolicy, listPage, messagePage, missingPage } from './page.ts';

const PAGE_SIZE = 50;
const MAX_LIMIT = 1_000;

/** Sends a recipient's answer to a message. @returns its id; undefined if the provider reports none for such a message */
export type Reply = (message: InboxMessage | InboxChat, text: string) => string | undefined;

/**
 * The inbox for programs (`/inbox/messages`) and for people (`/inbox`). It needs no credentials, since it is for development
 * only.
 */
export function inboxRoutes(app: FastifyInstance, inbox: Inbox, reply: Reply): void {
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(body.toString()))),
  );

  app.get<{ Querystring: { to?: unknown; limit?: unknown } }>('/inbox/messages', ({ query }, reply) => {
    const { to } = query;
    const limit = readLimit(query.limit ?? (to === undefined ? PAGE_SIZE : MAX_LIMIT));
    if (to !== undefined && typeof to !== 'string') return badRequest(reply, 'to: must be given once');
    if (limit === undefined) return badRequest(reply, `limit: must be a whole number from 1 to ${MAX_LIMIT}`);
    return reply.type('application/json').send(Readable.from(jsonArray(findLatest(inbox, to, limit))));
  });

  app.delete('/inbox/messages', (_request, reply) => {
    inbox.clear();
    return reply.code(204).send();
  });

  app.get<{ Querystring: { to?: unknown; page?: unknown } }>('/inbox', ({ query }, reply) => {
    // A space at either end was typed into the form, unless it was the plus of a number.
    const to = typeof query.to === 'string' ? restorePluses(query.to.replace(/^ (?=\d)/, '+').trim()) : '';
    const number = Math.max(1, Math.trunc(Number(query.page ?? 1)) || 1);
    const found = [...findLatest(inbox, to || undefined, number * PAGE_SIZE + 1)].slice((number - 1) * PAGE_SIZE);
    const messages = found.slice(0, PAGE_SIZE).map(parseMessage);
    const nonce = randomBytes(16).toString('base64');
    const list = { messages, to, number, hasMore: found.length > PAGE_SIZE, total: inbox.size };
    return sendPage(reply, nonce, listPage(list, nonce));
  });

  app.get<{ Params: { id: string } }>('/inbox/:id', ({ params }, reply) => {
    const found = inbox.get(params.id);
    const nonce = randomBytes(16).toString('base64');
    return found
      ? sendPage(reply, nonce, messagePage(parseMessage(found)))
      : sendPage(reply.code(404), nonce, missingPage());
  });

  app.post<{ Params: { id: string } }>('/inbox/:id/reply', ({ params, body, headers }, answer) => {
    const found = inbox.get(params.id);
    if (!found) return answer.code(404).send({ error: 'there is no such message' });
    const { text } = (body ?? {}) as { text?: unknown };
    if (typeof text !== 'string') return badRequest(answer, 'text: must be a string');
    const id = reply(parseMessage(found), text);
    if (id === undefined) return badRequest(answer, 'recipients cannot answer this message');
    const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
    return isForm ? answer.redirect(`/inbox/${encodeURIComponent(params.id)}`, 303) : answer.code(202).send({ id });
  });
}

function* findLatest(inbox: Inbox, to: string | undefined, limit: number): Generator<StoredMessage> {
  let count = 0;
  for (const found of inbox.find(...(to === undefined ? [] : [KEY.recipient(restorePluses(to))]))) {
    if (count++ === limit) return;
    yield found;
  }
}

/** In a query, an unescaped plus is decoded as a space, which no address, number or user id contains. */
function restorePluses(to: string): string {
  return to.replaceAll(' ', '+');
}

/** Streams messages as a JSON array. They are stored as JSON, and only one at a time is in memory. */
function* jsonArray(messages: Iterable<StoredMessage>): Generator<string> {
  let separator = '[';
  for (const found of messages) {
    yield separator + found.message();
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

function parseMessage(found: StoredMessage): InboxMessage | InboxChat {
  return JSON.parse(found.message()) as InboxMessage | InboxChat;
}

function readLimit(value: unknown): number | undefined {
  const limit = Number(value);
  return Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT ? limit : undefined;
}

function badRequest(reply: FastifyReply, message: string): FastifyReply {
  return reply.code(422).send({ error: message });
}

function sendPage(reply: FastifyReply, nonce: string, page: string): FastifyReply {
  return reply
    .headers({
      'content-security-policy': contentSecurityPolicy(nonce),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    .type('text/html; charset=utf-8')
    .send(page);
}
