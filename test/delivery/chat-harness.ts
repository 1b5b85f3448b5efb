import type { CallResult } from '../../src/delivery/contract.ts';
import { deliverOnce } from '../../src/delivery/deliver.ts';
import { messageChannel } from '../../src/delivery/messages/channel.ts';
import type { MessageDeps } from '../../src/delivery/messages/contract.ts';
import { makeMessagePace } from '../../src/delivery/messages/pace.ts';
import { makeProviderLine } from '../../src/delivery/line.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import { makeAttemptRecorder } from '../../src/delivery/call.ts';
import type { ChatProviderName, OutgoingChat } from '../../src/domain/chat/chat.ts';
import type { MessageChannel } from '../../src/domain/messages/message.ts';
import type { ChatOutcome, ChatProvider, ChatReport } from '../../src/providers/chat-provider.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { acceptText, connect } from '../store/chats.ts';
import { captureLog } from '../support/captured-log.ts';
import { ageAttempts, beginAttempt } from './attempts.ts';
import { contents } from '../support/contents.ts';

/** The outcome of a scripted provider for one message. A function may read the database first. */
export type ChatAct = ChatOutcome | ((message: OutgoingChat) => ChatOutcome | Promise<ChatOutcome>);

/** A chat-app provider with scripted outcomes, and a ledger of the messages that it took. */
export class ScriptedChat implements ChatProvider {
  readonly name: ChatProviderName;
  /** Outcomes of the next messages; it takes those without one. */
  readonly acts: ChatAct[] = [];
  /** Every message that it ever took, once for each time. */
  readonly took: { id: string; messageId: string }[] = [];
  readonly given: OutgoingChat[] = [];
  refuses: (message: OutgoingChat) => string | undefined = () => undefined;
  /** True if its list contains the messages that it took. */
  sees = true;
  /** The number of searches and report requests. */
  asked = 0;
  find?: NonNullable<ChatProvider['find']>;
  report?: NonNullable<ChatProvider['report']>;
  /** Its report of a message that it took. */
  reportOf: (messageId: string) => ChatReport | undefined = () => undefined;

  /** Twilio can be asked, Meta cannot. */
  constructor(name: ChatProviderName = 'twilio') {
    this.name = name;
    if (name === 'meta') return;
    this.find = async ({ id }) => {
      this.asked++;
      return this.sees ? this.took.find((each) => each.id === id)?.messageId : undefined;
    };
    this.report = async (_, messageId) => {
      this.asked++;
      return this.reportOf(messageId);
    };
  }

  refusal(message: OutgoingChat): string | undefined {
    return this.refuses(message);
  }

  take({ id }: { id: string }, messageId = `${this.name} ${this.took.length + 1}`): ChatOutcome {
    this.took.push({ id, messageId });
    return { kind: 'sent', messageId };
  }

  async send(message: OutgoingChat): Promise<ChatOutcome> {
    this.given.push(message);
    const act = this.acts.shift() ?? ((taken: OutgoingChat) => this.take(taken));
    return typeof act === 'function' ? act(message) : act;
  }
}

/** The dependencies of `deliverOnce` with a scripted provider and a captured log, and functions that deliver with them. */
export function chatHarness(pool: Pool, provider: ScriptedChat, settings: Partial<MessageDeps> = {}) {
  const { log, lines } = captureLog('debug');
  const deps: MessageDeps = {
    pool,
    contents,
    providerOf: () => provider,
    pace: makeMessagePace(1_000),
    windowPolicy: 'known',
    initialIntervalMs: 2_000,
    maxIntervalMs: 1_800_000,
    ambiguousSend: 'retry',
    ambiguousSendMaxRepeats: 1,
    confirmNotFoundAfterMs: 60_000,
    line: makeProviderLine(),
    goneWorkerWaitMs: 20_000,
    pauses: makeProviderPauses(pool, log),
    accountRetryForMs: 72 * 3_600_000,
    recorder: makeAttemptRecorder(pool, log),
    stopping: new AbortController().signal,
    log,
    ...settings,
  };
  return {
    deps,
    lines,
    deliver: (id: string) => deliverChat(deps, id),
    deliverSms: (id: string) => deliverChat(deps, id, 0, 'sms'),
    /** The outcomes of a message's attempts. */
    outcomes: async (id: string): Promise<(string | null)[]> => {
      const { rows } = await pool.query<{ outcome: string | null }>(
        `SELECT outcome FROM attempts WHERE message_id = $1 ORDER BY n`,
        [id],
      );
      return rows.map(({ outcome }) => outcome);
    },
    /** Ages the attempts of a message. */
    age: (id: string, seconds: number) => ageAttempts(pool, id, seconds),
    /** Leaves a message like a worker that dies during its call. */
    die: async (id: string, took: boolean): Promise<void> => {
      await beginAttempt(pool, id, 'call_dead', provider.name);
      if (took) provider.take({ id });
    },
  };
}

/** The result of delivering one message, without its id. */
export async function deliverChat(
  deps: MessageDeps,
  id: string,
  version = 0,
  channel: MessageChannel = 'chatapp',
): Promise<Result> {
  const { results } = await deliverOnce(deps, messageChannel(deps, channel), [{ id, version }]);
  const [result] = results;
  return Object.fromEntries(Object.entries(result ?? {}).filter(([name]) => name !== 'id')) as Result;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
type Result = WithoutId<Exclude<CallResult, { state: 'partial' }>>;

/** A function that accepts a text and returns the harness to deliver it, from a number of a provider of its own. */
export function acceptedTexts(pool: Pool, orgId: string) {
  return async (name: ChatProviderName = 'twilio', settings: Partial<MessageDeps> = {}) => {
    const number = await connect(pool, orgId, name);
    const id = await acceptText(pool, orgId, number.number);
    const provider = new ScriptedChat(name);
    return { id, number, provider, ...chatHarness(pool, provider, settings) };
  };
}

/** A provider's report about a message. */
export function reportOf(id: string, change: ChatReport['change'], providerMessageId: string): ChatReport {
  return { change, messageId: id, providerMessageId, dedupeKey: `${providerMessageId} ${change}` };
}
