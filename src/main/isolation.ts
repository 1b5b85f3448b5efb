import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Isolation, Member, MemberResult } from '../../activities/index.ts';
import { makeByteLimit } from '../domain/byte-limit.ts';
import {
  claimed,
  handedOver,
  noted,
  providerCalled,
  quarantined,
  settlement,
  type Topic,
} from '../telemetry/topics.ts';

/** What the worker asks of its isolated process. */
export interface IsolatedRequest {
  readonly request: number;
  readonly member: Member;
}

/** What that process reports: that it is ready, an answer, or news of a topic for the worker's metrics. */
export type IsolatedMessage =
  | { readonly ready: true }
  | { readonly request: number; readonly result: MemberResult }
  | { readonly request: number; readonly error: string }
  | { readonly topic: string; readonly news: unknown };

/** Topics of a delivery, by the names under which their news is passed on to the worker. */
const TOPICS = { claimed, handedOver, noted, providerCalled, quarantined, settlement };
export const FORWARDED_TOPICS = TOPICS as unknown as Readonly<Record<string, Topic<unknown>>>;

/** An activity waits this long for its turn, then gives its slot to others. */
const TURN_WAIT_MS = 2_000;
/**
 * One email is begun at a time. After this it is not taken to be what ends the process: the next may begin, so that a
 * provider that does not answer holds up one email and not all of them.
 */
const BEGINNING_MS = 3_000;
/** The process ends when it has had nothing to do for this long. */
const IDLE_MS = 60_000;
const START_TIMEOUT_MS = 60_000;

interface Pending {
  readonly resolve: (answer: MemberResult | 'crashed' | 'ended') => void;
  readonly reject: (error: Error) => void;
  readonly begunAt: number;
}

/** Starts the isolated process: from `dist/` with Node alone, from source with what this process was started with. */
export function forkIsolated(): ChildProcess {
  const [extension = '.js'] = /\.[jt]s$/.exec(import.meta.url) ?? [];
  return fork(fileURLToPath(new URL(`isolated-delivery${extension}`, import.meta.url)), { serialization: 'advanced' });
}

/** A child process that delivers one email at a time and is started when there is one. See `activities/quarantine.ts`. */
export function makeIsolation(start: () => ChildProcess, log: Logger): Isolation & { readonly stop: () => void } {
  const turns = makeByteLimit(1);
  let lastRequest = 0;
  let child: ReturnType<typeof open> | undefined;
  let idle: NodeJS.Timeout | undefined;

  function open() {
    const process = start();
    const pending = new Map<number, Pending>();
    let stopped = false;
    const ready = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => process.kill('SIGKILL'), START_TIMEOUT_MS);
      process.on('message', (message: IsolatedMessage) => {
        if ('ready' in message) {
          clearTimeout(timer);
          resolve(true);
        } else if ('topic' in message) FORWARDED_TOPICS[message.topic]?.tell(message.news);
        else {
          const { resolve: answer, reject } = pending.get(message.request) ?? {};
          pending.delete(message.request);
          if ('result' in message) answer?.(message.result);
          else reject?.(new Error(message.error));
        }
      });
      process.on('error', (error) => log.error({ err: error }, 'isolated process failed'));
      process.once('exit', (code, signal) => {
        clearTimeout(timer);
        resolve(false);
        if (child === opened) child = undefined;
        if (!stopped) log.warn({ code, signal, emails: pending.size }, 'isolated process ended');
        for (const { resolve: answer, begunAt } of pending.values()) {
          answer(!stopped && performance.now() - begunAt < BEGINNING_MS ? 'crashed' : 'ended');
        }
      });
    });
    const opened = {
      ready,
      pending,
      send: (member: Member): Promise<MemberResult | 'crashed' | 'ended'> =>
        new Promise((resolve, reject) => {
          const request = ++lastRequest;
          pending.set(request, { resolve, reject, begunAt: performance.now() });
          process.send({ request, member } satisfies IsolatedRequest, (error) => {
            // It ended just now, before it was asked.
            if (error && pending.delete(request)) resolve('ended');
          });
        }),
      stop: () => {
        stopped = true;
        if (process.connected) process.disconnect();
      },
    };
    return opened;
  }

  function stop(): void {
    clearTimeout(idle);
    child?.stop();
    child = undefined;
  }

  return {
    async deliver(member) {
      const release = await turns.take(1, { signal: AbortSignal.timeout(TURN_WAIT_MS) }).catch(() => undefined);
      if (!release) return 'busy';
      clearTimeout(idle);
      let begun: NodeJS.Timeout | undefined;
      try {
        const current = (child ??= open());
        if (!(await current.ready)) return 'ended';
        begun = setTimeout(release, BEGINNING_MS);
        return await current.send(member);
      } finally {
        clearTimeout(begun);
        release();
        clearTimeout(idle);
        if (!child?.pending.size) idle = setTimeout(stop, IDLE_MS).unref();
      }
    },
    stop,
  };
}
