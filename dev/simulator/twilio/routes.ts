import type { FastifyInstance, FastifyRequest } from 'fastify';
import { answerErrors, type ChatParts, chatCall } from '../chat-call.ts';
import type { StoredMessage } from '../inbox/inbox.ts';
import { NUMBERS } from '../numbers.ts';
import { type InboxChat, KEY } from '../inbox/message.ts';
import { parseAndValidate } from './accept.ts';
import { type Account, expectStatuses } from './callbacks.ts';
import { approvalRecord, CONTENTS } from './contents.ts';
import { CODE, failure, refuse } from './errors.ts';
import { endpointsOf, messageRecord } from './records.ts';

interface TwilioParts extends ChatParts {
  /** The only account; null accepts any account with any token. */
  readonly account: Account | null;
}

type Query = Readonly<Record<string, unknown>>;

const BODY_BYTES = 1_048_576;
const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;
const MESSAGES = '/2010-04-01/Accounts/:account/Messages';

/** The part of Twilio's API that Sendwright uses. `app` must be a separate scope, because it gets Twilio's errors. */
export function twilioRoutes(app: FastifyInstance, parts: TwilioParts): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: BODY_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(body.toString())),
  );

  app.addHook('onRequest', async (request, reply) => {
    const { account } = request.params as { account?: string };
    const given = credentials(request);
    const isKnown = parts.account === null || (given?.sid === parts.account.sid && given.token === parts.account.token);
    if (given && isKnown && (account === undefined || account === given.sid)) return;
    const { status, body } = refuse(401, CODE.authenticate, 'Authenticate');
    await reply.code(status).send(body);
  });

  answerErrors(app, parts, failure);

  app.post(`${MESSAGES}.json`, (request, reply) => {
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const account = credentials(request) as Account;
    const callback = form.get('StatusCallback');
    return chatCall(parts, reply, {
      failure,
      judge: () => {
        const now = Date.now();
        const judged = parseAndValidate(form, account.sid, now);
        if ('status' in judged) return judged;
        const { message } = judged;
        return {
          status: 201,
          body: messageRecord(message, account.sid, parts.reportAfter, now),
          received: judged,
          key: callback ?? form.toString(),
          expect: (behaviour) => {
            if (callback !== null && URL.canParse(callback))
              expectStatuses(message, callback, account, parts, behaviour);
          },
        };
      },
    });
  });

  app.get<{ Querystring: Query }>(`${MESSAGES}.json`, (request) =>
    list(parts, credentials(request) as Account, request.query),
  );

  app.get<{ Params: { file: string } }>(`${MESSAGES}/:file`, (request, reply) => {
    const { sid } = credentials(request) as Account;
    const found = parts.inbox.get(request.params.file.replace(/\.json$/, ''));
    if (found && isOf(found, sid)) return messageRecord(chatOf(found), sid, parts.reportAfter, Date.now());
    const { status, body } = refuse(404, CODE.notFound, `The requested resource ${request.url} was not found`);
    return reply.code(status).send(body);
  });

  // Twilio redirects to a host that requires no credentials.
  app.get<{ Params: { media: string } }>(`${MESSAGES}/:sid/Media/:media`, ({ params }, reply) =>
    reply.redirect(`/simulator/files/${params.media.replace(/^ME/, '')}`, 307),
  );

  app.get('/v2/Channels/Senders', () => {
    const url = `https://messaging.twilio.com/v2/Channels/Senders?Channel=whatsapp&PageSize=${NUMBERS.length}&Page=0`;
    const page = { page: 0, page_size: NUMBERS.length, previous_page_url: null, next_page_url: null };
    const senders = NUMBERS.map((number) => ({
      sid: `XE${number.slice(1).padStart(32, '0')}`,
      status: 'ONLINE',
      sender_id: `whatsapp:${number}`,
    }));
    return { senders, meta: { ...page, first_page_url: url, url, key: 'senders' } };
  });

  app.get('/v1/ContentAndApprovals', (request) => {
    const { sid } = credentials(request) as Account;
    const url = `https://content.twilio.com/v1/ContentAndApprovals?PageSize=${PAGE_SIZE}&Page=0`;
    return {
      contents: CONTENTS.map((content) => approvalRecord(content, sid)),
      meta: {
        page: 0,
        page_size: PAGE_SIZE,
        first_page_url: url,
        previous_page_url: null,
        url,
        next_page_url: null,
        key: 'contents',
      },
    };
  });
}

/** Returns the account of HTTP Basic authentication; undefined without a token. */
function credentials({ headers }: FastifyRequest): Account | undefined {
  const encoded = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  const [sid, token] = [text.slice(0, colon), text.slice(colon + 1)];
  return colon > 0 && token !== '' ? { sid, token } : undefined;
}

/** https://www.twilio.com/docs/messaging/api/message-resource#read-multiple-message-resources, newest first. */
function list({ inbox, switches, reportAfter }: TwilioParts, { sid }: Account, query: Query): object {
  const now = Date.now();
  const word = (name: string) => (typeof query[name] === 'string' ? query[name] : undefined);
  const size = Math.min(Math.max(1, Number(word('PageSize') ?? PAGE_SIZE)), MAX_PAGE_SIZE);
  const page = Number(word('Page') ?? 0);
  const [to, from] = [word('To'), word('From')];
  const [after, before] = [word('DateSent>'), word('DateSent<')];
  const recipient = to === undefined ? [] : [KEY.recipient(to.replace(/^whatsapp:/, ''))];
  const records = [];
  let skip = page * size;
  for (const found of inbox.find(KEY.provider('twilio'), ...recipient)) {
    if (!isOf(found, sid) || found.receivedAt > now - switches.now.search_lag_ms) continue;
    const chat = chatOf(found);
    const endpoints = endpointsOf(chat);
    if ((to ?? endpoints.to) !== endpoints.to || (from ?? endpoints.from) !== endpoints.from) continue;
    const record = messageRecord(chat, sid, reportAfter, now) as { date_sent: string | null };
    const sent = record.date_sent === null ? NaN : Date.parse(record.date_sent);
    if (after !== undefined && !(sent >= Date.parse(after))) continue;
    if (before !== undefined && !(sent <= Date.parse(before))) continue;
    if (skip-- > 0) continue;
    if (records.push(record) > size) break;
  }
  const uri = (number: number) => {
    const filter = new URLSearchParams(query as Record<string, string>);
    filter.set('PageSize', String(size));
    filter.set('Page', String(number));
    return `/2010-04-01/Accounts/${sid}/Messages.json?${filter.toString()}`;
  };
  const messages = records.slice(0, size);
  return {
    messages,
    first_page_uri: uri(0),
    next_page_uri: records.length > size ? uri(page + 1) : null,
    previous_page_uri: page > 0 ? uri(page - 1) : null,
    uri: uri(page),
    page,
    page_size: size,
    start: page * size,
    end: page * size + Math.max(0, messages.length - 1),
  };
}

function chatOf(found: StoredMessage): InboxChat {
  return JSON.parse(found.message()) as InboxChat;
}

function isOf(found: StoredMessage, account: string): boolean {
  const { provider, metadata } = found.head();
  return provider === 'twilio' && metadata['account'] === account;
}
