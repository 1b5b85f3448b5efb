import type { FastifyReply } from 'fastify';
import type { Behaviour, Switches } from './behaviour.ts';
import { garbage, pause, reset } from './fates.ts';
import type { Inbox } from './inbox/inbox.ts';
import type { InboxChat, Received } from './inbox/message.ts';
import { type ChatReportKind, chatMagicOf, type FailedOnce } from './magic.ts';
import { type Posts, shuffled } from './posts.ts';

/** What the simulated chat providers have in common. */
export interface ChatParts {
  readonly inbox: Inbox;
  readonly switches: Switches;
  readonly failedOnce: FailedOnce;
  readonly posts: Posts;
  /** Milliseconds between a message and the first report about it, and between reports. */
  readonly reportAfter: number;
  /** Milliseconds before each further try of a report. */
  readonly retries: readonly number[];
  /** Ends all waiting. */
  readonly ending: AbortSignal;
}

/** An answer of a provider's. */
export interface ChatAnswer {
  readonly status: number;
  readonly body: object;
}

/** A message that a provider takes. */
export interface Taken extends ChatAnswer {
  readonly received: Received<InboxChat>;
  /** What makes a message that comes again the same. */
  readonly key: string;
  /** Sends what is reported of it on its way. */
  readonly expect: (behaviour: Behaviour) => void;
}

/** What a provider says in its own words. */
interface Words {
  /** The message as it was judged. */
  readonly judge: () => Taken | ChatAnswer;
  /** An error that was asked for. @param code the provider's own; null for the one that goes with the status */
  readonly failure: (status: number, code: number | null, message: string) => object;
}

/** One call: what it may store is stored first, then its answer waits for as long as the switches say. */
export async function chatCall(parts: ChatParts, reply: FastifyReply, words: Words): Promise<FastifyReply> {
  const { switches, ending, inbox } = parts;
  const behaviour = switches.now;
  const fate = switches.take();
  if (fate === 'reset_before_accept') return reset(reply);
  const failAsAsked = (): FastifyReply => {
    const { status, error_code: code } = behaviour;
    return reply.code(status).send(words.failure(status, code, 'A switch of the simulator asks for this.'));
  };
  if (fate === 'fail_next') {
    await pause(behaviour.latency_ms, ending);
    if (behaviour.retry_after !== null) reply.header('retry-after', behaviour.retry_after);
    return failAsAsked();
  }

  const judged = words.judge();
  const taken = 'received' in judged && !fails(judged, parts) ? judged : undefined;
  const answer = 'received' in judged && !taken ? failed(words) : judged;
  if (taken) {
    inbox.add([taken.received]);
    taken.expect(behaviour);
  }

  if (fate === 'reset_after_accept') return reset(reply);
  if (fate === 'hang') return reply.hijack();
  await pause(behaviour.latency_ms, ending);
  if (fate === 'fail_after_accept') return failAsAsked();
  return fate === 'garbage' ? garbage(reply) : reply.code(answer.status).send(answer.body);
}

function fails({ received, key }: Taken, { failedOnce }: ChatParts): boolean {
  const { to, provider } = received.message;
  const { handover } = chatMagicOf(to);
  return handover === 'fail-always' || (handover === 'fail-once' && failedOnce.fails(`${provider} ${to} ${key}`));
}

function failed({ failure }: Words): ChatAnswer {
  return { status: 500, body: failure(500, null, 'The number asks for this.') };
}

/** One thing that will be reported of a message. */
export interface ChatDue {
  readonly kind: ChatReportKind;
  /** Unix milliseconds. Follows from the message alone: a restart changes nothing. */
  readonly at: number;
}

/** What will be reported of a message to this number, in the order it happens. */
export function chatReportsOf(to: string, receivedAt: number, after: number): ChatDue[] {
  return chatMagicOf(to).reports.map((kind, i) => ({ kind, at: receivedAt + after * (i + 1) }));
}

/** When each report is posted: the kinds in any order if the switches say so, each as often as they say. */
export function turnsOf(dues: readonly ChatDue[], behaviour: Behaviour): ChatDue[] {
  const kinds = behaviour.shuffle_reports ? shuffled(dues) : dues;
  const turns = dues.map(({ at }, i): ChatDue => ({ kind: (kinds[i] as ChatDue).kind, at }));
  return turns.flatMap((turn) => Array.from({ length: 1 + behaviour.repeat_reports }, () => turn));
}
