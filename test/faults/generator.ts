import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { RECIPIENTS_PER_FIELD } from '../../src/domain/limits.ts';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';
import type { Stack } from './stack.ts';
import type { Tenant } from './tenant.ts';

/** The sender's record of an answer. Each recipient gets one message and so identifies it. */
export type SenderEntry =
  | {
      readonly kind: 'accepted';
      readonly to: readonly string[];
      readonly id: string;
      readonly due: string | null;
      /** Unix milliseconds. */
      readonly at: number;
    }
  /** Ambiguous; with a key, accepted once at most. */
  | { readonly kind: 'unanswered'; readonly to: readonly string[]; readonly why: string }
  | {
      readonly kind: 'refused';
      readonly to: readonly string[];
      readonly why: string;
      /** True beyond a rate limit, and if the time of a repeated request has passed. */
      readonly isExpected: boolean;
    }
  | { readonly kind: 'canceled'; readonly to: readonly string[] };

/** The mix and the rate of requests. */
export interface Mix {
  /** Concurrent requests. */
  readonly lines: number;
  /** Milliseconds between two requests of a line. */
  readonly rest: number;
  /** Share of batches among all requests. Requests of no other kind are single emails. */
  readonly batches: number;
  /** Share of chat-app messages among all requests. */
  readonly chats: number;
  /** Share of emails with more recipients than Postmark accepts, which go by SMTP, among all requests. */
  readonly large: number;
  /** Share of emails and batches that have a `scheduled_at`. */
  readonly scheduled: number;
  /** Milliseconds until they are due, at least and at most. */
  readonly dueIn: readonly [number, number];
  /** Share of requests with an Idempotency-Key. */
  readonly keyed: number;
  /** Share of scheduled single emails that are canceled about when they are due. */
  readonly canceled: number;
}

export const USUAL: Mix = {
  lines: 6,
  rest: 60,
  batches: 0.05,
  chats: 0.1,
  large: 0.02,
  scheduled: 0.2,
  dueIn: [1_500, 6_000],
  keyed: 0.6,
  canceled: 0.1,
};

const ANSWER_TIMEOUT_MS = 20_000;
/** A request with a key is repeated for this long. */
const RETRY_FOR_MS = 90_000;
const RETRY_AFTER_MS = 300;
const BATCH = [20, 60] as const;

export interface Generator {
  /** Sends by its mix until `stop`. */
  readonly start: () => void;
  /** Stops sending, and waits for requests in flight. */
  readonly stop: () => Promise<void>;
  /** Posts a batch. @returns true if it was accepted */
  readonly postBatch: (size: number, keyed: boolean, dueIn?: number) => Promise<boolean>;
  readonly postOne: (keyed: boolean, more?: object) => Promise<boolean>;
  /** Posts an email with more recipients than Postmark accepts, which goes by SMTP. */
  readonly postLarge: (keyed: boolean) => Promise<void>;
}

/**
 * Posts messages and writes each answer to the ledger before it counts.
 * @param stack whose `url` is read before each request and may change
 */
export function makeGenerator(
  stack: Pick<Stack, 'url'>,
  tenant: Tenant,
  run: number,
  ledger: Ledger<SenderEntry>,
  random: Random,
  mix: Mix,
): Generator {
  const agent = new Agent({ connections: 64, headersTimeout: ANSWER_TIMEOUT_MS, bodyTimeout: ANSWER_TIMEOUT_MS });
  const inFlight = new Set<Promise<unknown>>();
  let count = 0;
  let chats = 0;
  let isOn = false;
  let stoppedAt = Infinity;

  const address = () => `r${run}-${++count}@example.net`;
  const phone = () => `+4915${String(run).padStart(4, '0')}${String(++chats).padStart(4, '0')}9`;
  const email = (to: string | string[], more: object = {}) => {
    return { from: tenant.from, to, subject: 'Fault test', text: 'Is it there, and once?', ...more };
  };
  const after = (ms: number) => new Date(Date.now() + ms).toISOString();

  async function post(path: string, body: object, to: readonly string[], keyed: boolean): Promise<string | undefined> {
    const key = keyed ? randomUUID() : undefined;
    const headers = { ...tenant.headers, ...(key !== undefined && { 'idempotency-key': key }) };
    const text = JSON.stringify(body);
    const due = dueOf(body);
    const until = Date.now() + RETRY_FOR_MS;
    for (;;) {
      const { status, answer } = await ask(agent, stack.url + path, headers, text);
      if (status === 202) {
        const { id, scheduled_at: dueAt = null } = answer as { id: string; scheduled_at?: string | null };
        await ledger.write({ kind: 'accepted', to, id, due: dueAt ?? due, at: Date.now() });
        return id;
      }
      const isAmbiguous = status === undefined || status >= 500;
      const why = status === undefined ? String(answer) : `${status} ${JSON.stringify(answer)}`;
      // 409: the first request with this key is still in flight.
      const isRetried = keyed && (isAmbiguous || status === 409 || status === 429) && Date.now() < until && !isOver();
      if (!isRetried) {
        const isExpected = status === 429 || (due !== null && Date.parse(due) <= Date.now());
        const isOpen = isAmbiguous || status === 409;
        await ledger.write(isOpen ? { kind: 'unanswered', to, why } : { kind: 'refused', to, why, isExpected });
        return undefined;
      }
      await sleep(RETRY_AFTER_MS);
    }
  }

  const isOver = () => Date.now() > stoppedAt + RETRY_FOR_MS;

  async function postOne(keyed: boolean, more: object = {}): Promise<boolean> {
    const to = address();
    return (await post('/v1/emails', email(to, more), [to], keyed)) !== undefined;
  }

  async function postBatch(size: number, keyed: boolean, dueIn?: number): Promise<boolean> {
    const to = Array.from({ length: size }, address);
    const more = dueIn === undefined ? {} : { scheduled_at: after(dueIn) };
    return (await post('/v1/emails/batch', { emails: to.map((one) => email(one, more)) }, to, keyed)) !== undefined;
  }

  async function postChat(keyed: boolean): Promise<void> {
    const to = phone();
    const from = random.chance(0.5) ? tenant.numbers.twilio : tenant.numbers.meta;
    await post('/v1/chatapp', { from, to, text: 'Is it there, and once?' }, [to], keyed);
  }

  async function postLarge(keyed: boolean): Promise<void> {
    const to = address();
    const others = Array.from({ length: RECIPIENTS_PER_FIELD }, (_, i) => `other-${i}@example.org`);
    await post('/v1/emails', email(to, { cc: others }), [to], keyed);
  }

  async function postScheduled(keyed: boolean): Promise<void> {
    const to = address();
    const wait = random.between(...mix.dueIn);
    const cancelAt = random.chance(mix.canceled) ? Date.now() + wait + random.between(-600, 400) : undefined;
    const id = await post('/v1/emails', email(to, { scheduled_at: after(wait) }), [to], keyed);
    if (cancelAt === undefined || id === undefined) return;
    await sleep(Math.max(0, cancelAt - Date.now()));
    const { status } = await ask(agent, `${stack.url}/v1/emails/${id}/cancel`, tenant.headers, '{}');
    if (status === 200) await ledger.write({ kind: 'canceled', to: [to] });
  }

  /** Posts one request of a random kind. */
  async function postAny(): Promise<void> {
    const keyed = random.chance(mix.keyed);
    const isScheduled = random.chance(mix.scheduled);
    const kind = random.between(0, 1);
    if (kind < mix.batches) {
      await postBatch(random.integer(...BATCH), keyed, isScheduled ? random.between(...mix.dueIn) : undefined);
    } else if (kind < mix.batches + mix.chats) await postChat(keyed);
    else if (kind < mix.batches + mix.chats + mix.large) await postLarge(keyed);
    else if (isScheduled) await postScheduled(keyed);
    else await postOne(keyed);
  }

  async function line(): Promise<void> {
    while (isOn) {
      await postAny();
      await sleep(mix.rest);
    }
  }

  /** Has `stop` wait for this work too. */
  function tracked<Args extends unknown[], T>(work: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
    return (...args) => {
      const running = work(...args).finally(() => inFlight.delete(running));
      inFlight.add(running);
      return running;
    };
  }

  return {
    start() {
      isOn = true;
      for (let i = 0; i < mix.lines; i++) void tracked(line)();
    },
    async stop() {
      isOn = false;
      stoppedAt = Date.now();
      while (inFlight.size > 0) await Promise.all(inFlight);
      await agent.destroy();
    },
    postBatch: tracked(postBatch),
    postOne: tracked(postOne),
    postLarge: tracked(postLarge),
  };
}

/** One request. @returns no status if it was not answered */
async function ask(
  dispatcher: Agent,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<{ status?: number; answer: unknown }> {
  try {
    const { statusCode, body: answer } = await request(url, { method: 'POST', headers, body, dispatcher });
    return { status: statusCode, answer: await answer.json() };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return { answer: code ?? message };
  }
}

interface Scheduled {
  readonly scheduled_at?: string;
}

function dueOf(body: object): string | null {
  const { emails, scheduled_at } = body as Scheduled & { readonly emails?: readonly Scheduled[] };
  return scheduled_at ?? emails?.[0]?.scheduled_at ?? null;
}
