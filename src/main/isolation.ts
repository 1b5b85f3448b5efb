import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Isolation, Member, MemberResult } from '../delivery/email/contract.ts';
import { makeByteLimit } from '../lib/byte-limit.ts';
import {
  claimed,
  handedOver,
  noted,
  providerCalled,
  quarantined,
  ambiguousEnded,
  type Topic,
} from '../telemetry/topics.ts';

/** What the worker asks of its isolated process: to deliver an email, or whether it still lives. */
export type IsolatedRequest = { readonly request: number; readonly member: Member } | { readonly ping: number };

/** What that process reports: that it is ready, an answer, or news of a topic for the worker's metrics. */
export type IsolatedMessage =
  | { readonly ready: true }
  | { readonly request: number; readonly result: MemberResult }
  | { readonly request: number; readonly error: string }
  | { readonly pong: number }
  | { readonly topic: string; readonly news: unknown };

/** Topics of a delivery, by the names under which their news is passed on to the worker. */
const TOPICS = { claimed, handedOver, noted, providerCalled, quarantined, ambiguousEnded };
export const FORWARDED_TOPICS = TOPICS as unknown as Readonly<Record<string, Topic<unknown>>>;

/** Milliseconds. */
export interface IsolationTimes {
  /** An activity waits this long for its turn, then gives its slot to others. */
  readonly turn: number;
  /**
   * One email is begun at a time. After this, and once the process has shown that it still lives, the next may begin: a
   * provider that does not answer holds up one email and not all of them.
   */
  readonly beginning: number;
  /** The same where emails may overlap. */
  readonly overlapping: number;
  /** A process that does not show it for this long has been stopped by the email that it has begun. */
  readonly hang: number;
  /** The process ends when it has had nothing to do for this long. */
  readonly idle: number;
  readonly start: number;
}

const TIMES: IsolationTimes = {
  turn: 2_000,
  beginning: 500,
  overlapping: 100,
  hang: 30_000,
  idle: 60_000,
  start: 60_000,
};

type Answer = MemberResult | 'crashed' | 'ended';

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  /** Called when the process has lived on for long enough. */
  readonly onBegun: () => void;
  isBeginning: boolean;
}

/** Starts the isolated process: from `dist/` with Node alone, from source with what this process was started with. */
export function forkIsolated(): ChildProcess {
  const [extension = '.js'] = /\.[jt]s$/.exec(import.meta.url) ?? [];
  return fork(fileURLToPath(new URL(`isolated-delivery${extension}`, import.meta.url)), { serialization: 'advanced' });
}

/** A child process that begins one email at a time and is started when there is one. See `src/delivery/email/quarantine.ts`. */
export function makeIsolation(
  start: () => ChildProcess,
  log: Logger,
  times = TIMES,
): Isolation & { readonly stop: () => void } {
  const turns = makeByteLimit(1);
  let isolated: IsolatedProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  function stop(): void {
    clearTimeout(idle);
    isolated?.stop();
    isolated = undefined;
  }

  return {
    async deliver(member, overlap) {
      const release = await turns.take(1, { signal: AbortSignal.timeout(times.turn) }).catch(() => undefined);
      if (!release) return 'busy';
      clearTimeout(idle);
      try {
        if (!isolated?.isAlive()) isolated = open(start(), log, times);
        return (await isolated.ready) ? await isolated.deliver(member, overlap, release) : 'ended';
      } finally {
        release();
        clearTimeout(idle);
        if (!isolated?.isBusy()) idle = setTimeout(stop, times.idle).unref();
      }
    },
    stop,
  };
}

interface IsolatedProcess {
  /** False when it ended before it was ready. */
  readonly ready: Promise<boolean>;
  readonly isAlive: () => boolean;
  readonly isBusy: () => boolean;
  readonly deliver: (member: Member, overlap: boolean, onBegun: () => void) => Promise<Answer>;
  readonly stop: () => void;
}

function open(child: ChildProcess, log: Logger, times: IsolationTimes): IsolatedProcess {
  const pending = new Map<number, Pending>();
  let lastRequest = 0;
  let isAlive = true;
  let isStopped = false;
  const kill = (): void => void child.kill('SIGKILL');
  const startTimer = setTimeout(kill, times.start);

  const ready = new Promise<boolean>((resolve) => {
    child.on('message', (message: IsolatedMessage) => {
      if ('ready' in message) resolve(true);
      else handle(message);
    });
    child.once('exit', (code, signal) => {
      isAlive = false;
      resolve(false);
      if (!isStopped) log.warn({ code, signal, emails: pending.size }, 'isolated process ended');
      for (const { resolve: answer, isBeginning } of pending.values()) {
        // What was the only email, or had just begun, has ended it.
        answer(!isStopped && (isBeginning || pending.size === 1) ? 'crashed' : 'ended');
      }
    });
    child.on('error', (error) => log.error({ err: error }, 'isolated process failed'));
  });
  void ready.then(() => clearTimeout(startTimer));

  function handle(message: Exclude<IsolatedMessage, { ready: true }>): void {
    if ('topic' in message) FORWARDED_TOPICS[message.topic]?.publish(message.news);
    else if ('pong' in message) {
      const begun = pending.get(message.pong);
      if (begun) begun.isBeginning = false;
      begun?.onBegun();
    } else {
      const { resolve, reject } = pending.get(message.request) ?? {};
      pending.delete(message.request);
      if ('result' in message) resolve?.(message.result);
      else reject?.(new Error(message.error));
    }
  }

  return {
    ready,
    isAlive: () => isAlive,
    isBusy: () => pending.size > 0,
    async deliver(member, overlap, onBegun) {
      const request = ++lastRequest;
      const send = (what: IsolatedRequest): void => {
        // Its end is reported by the event.
        child.send(what, () => undefined);
      };
      const ping = setTimeout(() => send({ ping: request }), overlap ? times.overlapping : times.beginning);
      const hang = setTimeout(() => {
        if (pending.get(request)?.isBeginning) kill();
      }, times.hang);
      try {
        return await new Promise<Answer>((resolve, reject) => {
          pending.set(request, { resolve, reject, onBegun, isBeginning: true });
          if (isAlive) send({ request, member });
          else resolve('ended');
        });
      } finally {
        pending.delete(request);
        clearTimeout(ping);
        clearTimeout(hang);
      }
    },
    stop() {
      isStopped = true;
      if (child.connected) child.disconnect();
    },
  };
}
