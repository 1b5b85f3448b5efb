import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';
import type { Stack } from './stack.ts';
import type { Tenant } from './tenant.ts';

/** What the sender was told, in his own ledger. A message is known by its recipient, who gets no other. */
export type SenderEntry =
  | {
      readonly is: 'accepted';
      readonly to: readonly string[];
      readonly id: string;
      readonly due: string | null;
      /** Unix milliseconds. */
      readonly at: number;
    }
  /** It may have been accepted; with a key, once at most. */
  | { readonly is: 'unanswered'; readonly to: readonly string[]; readonly why: string }
  | { readonly is: 'refused'; readonly to: readonly string[]; readonly why: string }
  | { readonly is: 'canceled'; readonly to: readonly string[] };

/** What is sent, and how fast. */
export interface Mix {
  /** Concurrent requests. */
  readonly lines: number;
  /** Milliseconds that a line rests between two requests. */
  readonly rest: number;
  /** Of all requests; the rest are single emails. */
  readonly batches: number;
  readonly chats: number;
  /** Emails with more recipients than Postmark takes, which go by SMTP. */
  readonly large: number;
  /** Of emails and batches, those with a time; and milliseconds until then. */
  readonly scheduled: number;
  readonly dueIn: readonly [number, number];
  /** Requests with an Idempotency-Key. */
  readonly keyed: number;
  /** Of single emails that are scheduled, those that are called back about when they are due. */
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

/** Milliseconds for an answer, and for which a request with a key is tried again. */
const ANSWER_WITHIN = 20_000;
const TRIED_FOR = 90_000;
const AGAIN_AFTER = 300;
const LARGE = 51;
const BATCH = [20, 60] as const;

export interface Generator {
  /** Sends by its mix until `stop`. */
  readonly start: () => void;
  /** Ends new requests, and waits for those that have begun. */
  readonly stop: () => Promise<void>;
  /** A batch of its own. @returns whether it was accepted */
  readonly postBatch: (size: number, keyed: boolean, dueIn?: number) => Promise<boolean>;
  readonly postOne: (keyed: boolean, more?: object) => Promise<boolean>;
  /** An email with more recipients than Postmark takes, which goes by SMTP. */
  readonly postLarge: (keyed: boolean) => Promise<void>;
}

/**
 * Posts messages as a careful customer does: what a 202 says is on disk before it counts.
 * @param stack is asked for its `url` before each request, so that there may be several
 */
export function makeGenerator(
  stack: Pick<Stack, 'url'>,
  tenant: Tenant,
  run: number,
  ledger: Ledger<SenderEntry>,
  random: Random,
  mix: Mix,
): Generator {
  const agent = new Agent({ connections: 64, headersTimeout: ANSWER_WITHIN, bodyTimeout: ANSWER_WITHIN });
  const under = new Set<Promise<unknown>>();
  let count = 0;
  let chats = 0;
  let isOn = false;
  let stopped = false;

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
    const until = Date.now() + TRIED_FOR;
    for (;;) {
      const { status, answer } = await ask(agent, stack.url + path, headers, text);
      if (status === 202) {
        const { id, scheduled_at: due = null } = answer as { id: string; scheduled_at?: string | null };
        await ledger.write({ is: 'accepted', to, id, due: due ?? dueOf(body), at: Date.now() });
        return id;
      }
      const mayHave = status === undefined || status >= 500;
      const why = status === undefined ? String(answer) : `${status} ${JSON.stringify(answer)}`;
      // 409 says that the first request with this key is still being handled.
      const again = keyed && (mayHave || status === 409 || status === 429) && Date.now() < until && !gaveUp();
      if (!again) {
        await ledger.write({ is: mayHave || status === 409 ? 'unanswered' : 'refused', to, why });
        return undefined;
      }
      await sleep(AGAIN_AFTER);
    }
  }

  const gaveUp = () => stopped && Date.now() > stoppedAt + TRIED_FOR;
  let stoppedAt = Infinity;

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
    const others = Array.from({ length: LARGE - 1 }, (_, i) => `other-${i}@example.org`);
    await post('/v1/emails', email([to, ...others]), [to], keyed);
  }

  async function postScheduled(keyed: boolean): Promise<void> {
    const to = address();
    const wait = random.between(...mix.dueIn);
    const cancelAt = random.chance(mix.canceled) ? Date.now() + wait + random.between(-600, 400) : undefined;
    const id = await post('/v1/emails', email(to, { scheduled_at: after(wait) }), [to], keyed);
    if (cancelAt === undefined || id === undefined) return;
    await sleep(Math.max(0, cancelAt - Date.now()));
    const { status } = await ask(agent, `${stack.url}/v1/emails/${id}/cancel`, tenant.headers, '{}');
    if (status === 200) await ledger.write({ is: 'canceled', to: [to] });
  }

  /** One request, whose kind the dice say. */
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

  /** Those that are asked for one by one are waited for too. */
  function noted<Args extends unknown[], T>(work: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
    return (...args) => {
      const running = work(...args).finally(() => under.delete(running));
      under.add(running);
      return running;
    };
  }

  return {
    start() {
      isOn = true;
      for (let i = 0; i < mix.lines; i++) void noted(line)();
    },
    async stop() {
      isOn = false;
      stopped = true;
      stoppedAt = Date.now();
      while (under.size > 0) await Promise.all(under);
      await agent.destroy();
    },
    postBatch: noted(postBatch),
    postOne: noted(postOne),
    postLarge: noted(postLarge),
  };
}

/** One request. @returns no status when it was not answered */
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

function dueOf(body: object): string | null {
  const { emails } = body as { emails?: readonly { scheduled_at?: string }[] };
  return emails?.[0]?.scheduled_at ?? null;
}
