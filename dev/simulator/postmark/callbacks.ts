import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { Pool } from 'undici';
import type { Behaviour } from '../behaviour.ts';
import { STEPS } from '../magic.ts';
import { shuffled } from '../posts.ts';
import { type Due, type Reported, reportsOf, webhookRecord } from './reports.ts';

/** Where records are posted, with HTTP Basic credentials. */
export interface CallbackTarget {
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

const IN_FLIGHT = 20;
/** More than these are not remembered: the newest are dropped. */
const WAITING = 100_000;

interface Job {
  readonly reported: Reported;
  readonly due: Due;
  readonly trace: string;
  /** How often it was tried before. */
  readonly tries: number;
}

/** Posts records as Postmark does. What is still waiting when the process ends is lost; the details of a message tell it. */
export class Callbacks {
  readonly #target: CallbackTarget;
  readonly #after: number;
  readonly #retries: readonly number[];
  readonly #log: Logger;
  readonly #pool: Pool;
  /** One for each step of a message's reports and one for each further try: within each, times only grow. */
  readonly #lanes: Lane[];
  #inFlight = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * @param after milliseconds between a message and its report
   * @param retries milliseconds before each further try
   */
  constructor(target: CallbackTarget, after: number, retries: readonly number[], log: Logger) {
    this.#target = target;
    this.#after = after;
    this.#retries = retries;
    this.#log = log;
    const timeouts = { headersTimeout: 10_000, bodyTimeout: 10_000, connect: { timeout: 5_000 } };
    this.#pool = new Pool(new URL(target.url).origin, timeouts);
    this.#lanes = Array.from({ length: STEPS.length + retries.length }, () => new Lane());
  }

  /** Will post all that there is to report about these messages. */
  expect(messages: readonly Reported[], behaviour: Pick<Behaviour, 'repeat_reports' | 'shuffle_reports'>): void {
    for (const reported of messages) {
      const reports = reportsOf(reported.head, this.#after);
      const turns = behaviour.shuffle_reports ? shuffled(reports) : reports;
      for (const [i, due] of reports.entries()) {
        const { step, at } = turns[i] as Due;
        const lane = this.#lanes[step - 1] as Lane;
        const trace = randomUUID();
        for (let times = 0; times <= behaviour.repeat_reports; times++) {
          if (lane.length < WAITING) lane.push({ reported, due, trace, tries: 0 }, at);
          else this.#log.warn({ message: reported.head.id }, 'callback dropped: too many are waiting');
        }
      }
    }
    this.#pump();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#pool.destroy();
  }

  /** Posts what is due, and comes back when the next one is. */
  #pump(): void {
    clearTimeout(this.#timer);
    while (!this.#closed && this.#inFlight < IN_FLIGHT) {
      const lane = this.#lanes.reduce((best, other) => (other.next < best.next ? other : best));
      if (lane.length === 0) return;
      const wait = lane.next - Date.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#pump(), wait);
        return;
      }
      this.#inFlight++;
      void this.#try(lane.shift()).finally(() => {
        this.#inFlight--;
        this.#pump();
      });
    }
  }

  /** One try. Postmark tries again after 408, 429, 5xx or no answer, and drops the record at any other 4xx. */
  async #try(job: Job): Promise<void> {
    const { tries } = job;
    const status = await this.#post(job).catch(() => undefined);
    if ((status !== undefined && status < 400) || this.#closed) return;
    const again = status === undefined || status === 408 || status === 429 || status >= 500;
    const wait = this.#retries[tries];
    if (again && wait !== undefined)
      this.#lanes[STEPS.length + tries]?.push({ ...job, tries: tries + 1 }, Date.now() + wait);
    else this.#log.warn({ message: job.reported.head.id, status }, 'callback dropped');
  }

  async #post({ reported, due, trace, tries }: Job): Promise<number> {
    const { url, user, password } = this.#target;
    const { pathname, search } = new URL(url);
    const { statusCode, body } = await this.#pool.request({
      method: 'POST',
      path: pathname + search,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Postmark',
        authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
        'x-pm-webhook-trace-id': trace,
        'x-pm-retries-remaining': String(this.#retries.length - tries),
      },
      body: JSON.stringify(webhookRecord(reported, due)),
    });
    await body.dump();
    return statusCode;
  }
}

interface Entry {
  readonly job: Job;
  readonly at: number;
}

/** A queue whose times only grow. */
class Lane {
  #entries: Entry[] = [];
  #first = 0;

  get length(): number {
    return this.#entries.length - this.#first;
  }

  /** When its first job is due, in Unix milliseconds; never, if it has none. */
  get next(): number {
    return this.#entries[this.#first]?.at ?? Infinity;
  }

  push(job: Job, at: number): void {
    this.#entries.push({ job, at });
  }

  /** Takes the first job; there must be one. */
  shift(): Job {
    const { job } = this.#entries[this.#first++] as Entry;
    if (this.#first > 1_000 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
    return job;
  }
}
