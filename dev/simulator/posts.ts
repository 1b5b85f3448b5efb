import { randomInt } from 'node:crypto';
import type { Logger } from 'pino';
import { Agent, request } from 'undici';

/** A report that is to be posted to a callback URL. */
export interface Post {
  /** The message's id, for the log. */
  readonly id: string;
  readonly url: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Milliseconds before each further attempt. */
  readonly retries: readonly number[];
  /** Called for each attempt. */
  readonly content: (retriesLeft: number) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /** Returns true if an error status is retried; all are by default. A missing response is always retried. */
  readonly isRetried?: (status: number) => boolean;
}

const CONNECTIONS_PER_TARGET = 20;
const MAX_PENDING = 500_000;

/** Posts reports when they are due. Pending reports are lost when the process ends. */
export class Posts {
  readonly #log: Logger;
  readonly #agent = new Agent({
    connections: CONNECTIONS_PER_TARGET,
    headersTimeout: 10_000,
    bodyTimeout: 10_000,
    connect: { timeout: 5_000 },
  });
  #pending = 0;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(posts: readonly Post[]): void {
    for (const post of posts) {
      if (this.#pending >= MAX_PENDING) {
        this.#log.warn({ message: post.id }, 'report dropped: too many are waiting');
        continue;
      }
      this.#pending++;
      this.#schedule(post, post.at - Date.now(), post.retries);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#agent.destroy();
  }

  #schedule(post: Post, delayMs: number, retries: readonly number[]): void {
    setTimeout(() => void this.#post(post, retries), Math.max(0, delayMs)).unref();
  }

  async #post(post: Post, retries: readonly number[]): Promise<void> {
    const status = await this.#attempt(post, retries.length).catch(() => undefined);
    if (this.#isClosed) return;
    const isAccepted = status !== undefined && status < 400;
    const [delayMs, ...later] = retries;
    const isRetried = status === undefined || (post.isRetried?.(status) ?? true);
    if (!isAccepted && isRetried && delayMs !== undefined) {
      this.#schedule(post, delayMs, later);
      return;
    }
    this.#pending--;
    if (!isAccepted) this.#log.warn({ message: post.id, status }, 'report dropped');
  }

  async #attempt({ url, content }: Post, retriesLeft: number): Promise<number> {
    const options = { method: 'POST', ...content(retriesLeft), dispatcher: this.#agent } as const;
    const { statusCode, body } = await request(url, options);
    await body.dump();
    return statusCode;
  }
}

/** Returns a copy in random order (Fisher and Yates). */
export function shuffle<T>(items: readonly T[]): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = randomInt(i + 1);
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
