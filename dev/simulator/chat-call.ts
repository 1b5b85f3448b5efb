import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { Behaviour, Switches } from './behaviour.ts';
import { sendGarbage, pause, resetConnection } from './faults.ts';
import type { Inbox } from './inbox/inbox.ts';
import type { InboxChat, Received } from './inbox/message.ts';
import { type ChatReportKind, chatMagicOf, type FailedOnce, smsMagicOf } from './magic.ts';
import { type Posts, shuffle } from './posts.ts';

export interface ChatParts {
  readonly inbox: Inbox;
  readonly switches: Switches;
  readonly failedOnce: FailedOnce;
  readonly posts: Posts;
  /** Milliseconds between a message and the first report about it, and between reports. */
  readonly reportAfter: number;
  /** Milliseconds before each retry of a report. */
  readonly retries: readonly number[];
  /** Aborts all waiting when the simulator ends. */
  readonly ending: AbortSignal;
  readonly log: Logger;
}

export interface ChatAnswer {
  readonly status: number;
  readonly body: object;
}

/** A message that a provider accepts. */
export interface AcceptedMessage extends ChatAnswer {
  readonly received: Received<InboxChat>;
  /** Identifies a repeated message. */
  readonly key: string;
  /** Schedules its reports. */
  readonly expect: (behaviour: Behaviour) => void;
}

/** The provider-specific part of a call. */
interface ProviderFormat {
  /** Returns the accepted message, or an error response. */
  readonly judge: () => AcceptedMessage | ChatAnswer;
  readonly failure: Failure;
}

/** Returns the body of an error. @param code the provider's code; null for the usual code of the status */
type Failure = (status: number, code: number | null, message: string) => object;

/** The usual codes of a provider by status, and those of other statuses from 500 and below 500. */
interface UsualCodes {
  readonly [status: number]: number;
  readonly server: number;
  readonly client: number;
}

/** @param refuse returns an error response of the provider */
export function failureOf(
  refuse: (status: number, code: number, message: string) => ChatAnswer,
  usual: UsualCodes,
): Failure {
  return (status, code, message) =>
    refuse(status, code ?? usual[status] ?? (status >= 500 ? usual.server : usual.client), message).body;
}

/** Responds to errors of a provider's routes in its format, and logs those of the simulator itself. */
export function answerErrors(app: FastifyInstance, { ending, log }: ChatParts, failure: Failure): void {
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500 && !ending.aborted) log.error({ err: error }, 'simulator: request failed');
    return reply.code(status).send(failure(status, null, error.message));
  });
}

/** Stores the message first, then delays the response as the switches require. */
export async function chatCall(parts: ChatParts, reply: FastifyReply, format: ProviderFormat): Promise<FastifyReply> {
  const { switches, ending, inbox } = parts;
  const behaviour = switches.now;
  const fault = switches.take();
  if (fault === 'reset_before_accept') return resetConnection(reply);
  const failAsAsked = (): FastifyReply => {
    const { status, error_code: code } = behaviour;
    return reply.code(status).send(format.failure(status, code, 'A switch of the simulator asks for this.'));
  };
  if (fault === 'fail_next') {
    await pause(behaviour.latency_ms, ending);
    if (behaviour.retry_after !== null) reply.header('retry-after', behaviour.retry_after);
    return failAsAsked();
  }

  const result = format.judge();
  const accepted = 'received' in result && !fails(result, parts) ? result : undefined;
  const response = 'received' in result && !accepted ? failedAnswer(format) : result;
  if (accepted) {
    inbox.add([accepted.received]);
    accepted.expect(behaviour);
  }

  if (fault === 'reset_after_accept') return resetConnection(reply);
  if (fault === 'hang') return reply.hijack();
  await pause(behaviour.latency_ms, ending);
  if (fault === 'fail_after_accept') return failAsAsked();
  return fault === 'garbage' ? sendGarbage(reply) : reply.code(response.status).send(response.body);
}

function fails({ received, key }: AcceptedMessage, { failedOnce }: ChatParts): boolean {
  const { to, provider } = received.message;
  const { handover } = chatMagicOf(to);
  return handover === 'fail-always' || (handover === 'fail-once' && failedOnce.fails(`${provider} ${to} ${key}`));
}

function failedAnswer({ failure }: ProviderFormat): ChatAnswer {
  return { status: 500, body: failure(500, null, 'The number asks for this.') };
}

/** A future report about a message. */
export interface DueChatReport {
  readonly kind: ChatReportKind;
  /** Unix milliseconds. Depends only on the message, so a restart changes nothing. */
  readonly at: number;
}

/** True if the recipient's customer-service window is closed, so that only templates are delivered. */
export function isWindowClosed({ channel, to, type }: Pick<InboxChat, 'channel' | 'to' | 'type'>): boolean {
  return channel !== 'sms' && to.endsWith('0007') && type !== 'template';
}

export function chatReportsOf(chat: InboxChat, after: number): DueChatReport[] {
  const { reports } = chat.channel === 'sms' ? smsMagicOf(chat.to) : chatMagicOf(chat.to);
  const kinds = isWindowClosed(chat) ? (['failed'] as const) : reports;
  return kinds.map((kind, i) => ({ kind, at: Date.parse(chat.received_at) + after * (i + 1) }));
}

/** Returns the reports with their times, shuffled and repeated as the switches require. */
export function scheduleReports(reports: readonly DueChatReport[], behaviour: Behaviour): DueChatReport[] {
  const ordered = behaviour.shuffle_reports ? shuffle(reports) : reports;
  const scheduled = reports.map(({ at }, i): DueChatReport => ({ kind: (ordered[i] as DueChatReport).kind, at }));
  return scheduled.flatMap((report) => Array.from({ length: 1 + behaviour.repeat_reports }, () => report));
}
