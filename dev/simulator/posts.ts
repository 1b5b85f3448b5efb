import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Agent, request } from 'undici';

/** A report of a chat provider's on its way to whoever wants to know. */
export interface Post {
  /** Of the message it speaks of; for the log. */
  readonly id: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Milliseconds before each further try. */
  readonly retries: readonly number[];
}

const IN_FLIGHT = 20;
/** More than these are not remembered: the newest are dropped. */
const WAITING = 100_000;

/** Posts reports when they are due, also to several addresses. What still waits when the process ends is lost. */
export class Posts {
  readonly #log: Logger;
  readonly #agent = new Agent({
    connections: IN_FLIGHT,
    headersTimeout: 10_000,
    bodyTimeout: 10_000,
    connect: { timeout: 5_000 },
  });
  readonly #ending = new AbortController();
  #waiting = 0;

  constructor(log: Logger) {
    this.#log = log;
    setMaxListeners(0, this.#ending.signal);
  }

  add(posts: readonly Post[]): void {
    for (const post of posts) {
      if (this.#waiting >= WAITING) this.#log.warn({ message: post.id }, 'report dropped: too many are waiting');
      else void this.#carry(post);
    }
  }

  async close(): Promise<void> {
    this.#ending.abort();
    await this.#agent.destroy();
  }

  async #carry({ id, url, headers, body, at, retries }: Post): Promise<void> {
    this.#waiting++;
    try {
      const { signal } = this.#ending;
      let status: number | undefined;
      for (const wait of [at - Date.now(), ...retries]) {
        await sleep(Math.max(0, wait), undefined, { signal });
        status = await this.#try(url, headers, body).catch(() => undefined);
        if (status !== undefined && status < 400) return;
      }
      if (!signal.aborted) this.#log.warn({ message: id, status }, 'report dropped');
    } catch {
      // The simulator ends.
    } finally {
      this.#waiting--;
    }
  }

  async #try(url: string, headers: Post['headers'], body: string): Promise<number> {
    const { statusCode, body: answer } = await request(url, { method: 'POST', headers, body, dispatcher: this.#agent });
    await answer.dump();
    return statusCode;
  }
}

/** A copy in any order (Fisher and Yates). */
export function shuffled<T>(items: readonly T[]): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = randomInt(i + 1);
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
