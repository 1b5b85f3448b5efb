import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Dns } from '../../src/providers/dns.ts';
import { Switches } from './behaviour.ts';
import { Inbox, type InboxLimits } from './inbox/inbox.ts';
import { inboxRoutes } from './inbox/routes.ts';
import { FailedOnce } from './magic.ts';
import { MetaReports, type MetaTarget } from './meta/callbacks.ts';
import { metaInbound as metaPosts } from './meta/inbound.ts';
import { metaRoutes } from './meta/routes.ts';
import { type CallbackTarget, makeExpectReports } from './postmark/callbacks.ts';
import { postmarkRoutes } from './postmark/routes.ts';
import { Suppressions } from './postmark/suppressions.ts';
import { Posts } from './posts.ts';
import { startSmtp } from './smtp/server.ts';
import { Files, replyAsUser, userRoutes } from './users.ts';
import { type Account, replyBySms } from './twilio/callbacks.ts';
import { twilioInbound as twilioPosts } from './twilio/inbound.ts';
import { twilioRoutes } from './twilio/routes.ts';

export interface SimulatorOptions {
  readonly host: string;
  /** 0 uses any free port, as for `smtpPort`. */
  readonly port: number;
  readonly smtpPort: number;
  /** The folder of the inbox; null stores it in memory. */
  readonly folder: string | null;
  /** Postmark's server token that callers must send; null accepts any. */
  readonly serverToken: string | null;
  /** Postmark's account token that callers must send; null or undefined accepts any. */
  readonly accountToken?: string | null;
  /** Postmark's resolver for domains; null or undefined verifies none. */
  readonly dns?: Dns | null;
  /** The URL for Postmark's reports; null posts none. */
  readonly deliveryCallback: CallbackTarget | null;
  /** Twilio's only account; null or undefined accepts any. The callback URL is in each message. */
  readonly twilioAccount?: Account | null;
  /** The URL for Twilio's inbound messages, signed with the token of `account`; null or undefined posts none. */
  readonly twilioInbound?: { readonly url: string; readonly account: Account } | null;
  /** Meta's token that callers must send; null or undefined accepts any. */
  readonly metaToken?: string | null;
  /** The URL for Meta's reports about chat-app messages; null or undefined posts none. */
  readonly metaCallback?: MetaTarget | null;
  readonly log: Logger;
  /** Limits of the inbox; by default 200,000 messages, and 4 GiB on disk or 512 MiB in memory. */
  readonly keep?: Partial<InboxLimits>;
  readonly times?: Partial<Times>;
}

/** Milliseconds. */
export interface Times {
  /** Before the response to a message for `slow@`. */
  readonly slow: number;
  /** Between a message and the first report about it. */
  readonly report: number;
  /** Before each retry of a callback. */
  readonly callbackRetries: readonly number[];
}

const TIMES: Times = {
  slow: 20_000,
  report: 300,
  callbackRetries: [1_000, 2_000, 4_000, 8_000, 15_000, 30_000],
};

export interface Simulator {
  /** Postmark's API. */
  readonly postmarkUrl: string;
  /** Twilio's and Meta's APIs, each at its own paths. */
  readonly chatUrl: string;
  readonly smtpUrl: string;
  readonly inboxUrl: string;
  /** Closes all connections. Accepted messages stay in `folder`. */
  close(): Promise<void>;
}

/** Starts simulated providers with one inbox: the APIs of Postmark, Twilio and Meta, and an SMTP server. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { host, folder, log, deliveryCallback } = options;
  const times = { ...TIMES, ...options.times };
  const bytes = folder === null ? 512 * 1_048_576 : 4_096 * 1_048_576;
  const inbox = new Inbox(folder, { messages: 200_000, bytes, ...options.keep }, log);
  const ending = new AbortController();
  const posts = new Posts(log);
  const expectReports =
    deliveryCallback && makeExpectReports(deliveryCallback, times.report, times.callbackRetries, posts);
  const parts = {
    inbox,
    switches: new Switches(),
    failedOnce: new FailedOnce(),
    expectReports,
    suppressions: new Suppressions(),
    slow: times.slow,
    reportAfter: times.report,
    ending: ending.signal,
    serverToken: options.serverToken,
    accountToken: options.accountToken ?? null,
    dns: options.dns ?? null,
    log,
  };

  const chat = { ...parts, posts, retries: times.callbackRetries };
  const { twilioAccount: account = null, twilioInbound, metaToken: accessToken = null, metaCallback } = options;
  const reports = metaCallback ? new MetaReports(metaCallback, chat) : null;
  const files = new Files();
  const postsOf = {
    twilio: twilioInbound ? twilioPosts(twilioInbound) : null,
    meta: metaCallback ? metaPosts(metaCallback) : null,
  };
  const users = { ...chat, files, postsOf };

  const app = Fastify({ forceCloseConnections: true });
  void app.register(async (scope) => postmarkRoutes(scope, parts));
  void app.register(async (scope) => twilioRoutes(scope, { ...chat, account }));
  void app.register(async (scope) => metaRoutes(scope, { ...chat, accessToken, files, reports }));
  void app.register(async (scope) =>
    inboxRoutes(scope, inbox, (message, text) => {
      if (!('type' in message)) return undefined;
      if (message.channel !== 'sms') return replyAsUser(users, message, text);
      return twilioInbound ? replyBySms(message, text, twilioInbound.url, twilioInbound.account, chat) : undefined;
    }),
  );
  userRoutes(app, users);
  switchRoutes(app, parts.switches);

  await app.listen({ host, port: options.port });
  const smtp = await startSmtp(host, options.smtpPort, parts).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  const url = `http://${host}:${(app.server.address() as AddressInfo).port}`;
  return {
    postmarkUrl: url,
    chatUrl: url,
    smtpUrl: `smtp://${host}:${smtp.port}`,
    inboxUrl: `${url}/inbox`,
    async close() {
      ending.abort();
      await Promise.all([app.close(), smtp.close(), posts.close()]);
      inbox.close();
    },
  };
}

/** The routes that read and set the behavior; see Behaviour. */
function switchRoutes(app: FastifyInstance, switches: Switches): void {
  app.get('/simulator/behaviour', () => switches.now);

  app.put('/simulator/behaviour', (request, reply) => {
    const problem = switches.set(request.body);
    return problem === undefined ? switches.now : reply.code(422).send({ error: problem });
  });

  app.delete('/simulator/behaviour', () => {
    switches.reset();
    return switches.now;
  });
}
