import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Member, MemberResult } from '../delivery/contract.ts';
import type { Isolation } from '../delivery/email/contract.ts';
import { environmentOfChild } from './env.ts';
import { makeSemaphore } from '../lib/semaphore.ts';
import {
  messagesClaimed,
  messagesSent,
  eventsRecorded,
  providerCalled,
  messagesQuarantined,
  ambiguousCallsResolved,
  type Topic,
} from '../telemetry/topics.ts';

/** Requests of the worker to its isolated process: a delivery, or a ping. */
export type IsolatedRequest = { readonly request: number; readonly member: Member } | { readonly ping: number };

/** Messages of the isolated process: readiness, responses, and topic events for the worker's metrics. */
export type IsolatedMessage =
  | { readonly ready: true }
  | { readonly request: number; readonly result: MemberResult }
  | { readonly request: number; readonly error: string }
  | { readonly pong: number }
  | { readonly topic: string; readonly event: unknown };

/** The topics of deliveries, by their names in messages. */
const TOPICS = {
  messagesClaimed,
  messagesSent,
  eventsRecorded,
  providerCalled,
  messagesQuarantined,
  ambiguousCallsResolved,
};
export const FORWARDED_TOPICS = TOPICS as unknown as Readonly<Record<string, Topic<unknown>>>;

export interface IsolationTimes {
  /** An activity that waits longer than this for its turn releases its slot. */
  readonly turnTimeoutMs: number;
  /**
   * Delay between the start of an email and the ping. The next email may start after the pong, so that a provider that does
   * not respond blocks only one email.
   */
  readonly pingDelayMs: number;
  /** The same delay if emails may overlap. */
  readonly overlapPingDelayMs: number;
  /** A process that does not answer a ping within this time is killed, because the started email has blocked it. */
  readonly hangTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly startTimeoutMs: number;
}

const TIMES: IsolationTimes = {
  turnTimeoutMs: 2_000,
  pingDelayMs: 500,
  overlapPingDelayMs: 100,
  hangTimeoutMs: 30_000,
  idleTimeoutMs: 60_000,
  startTimeoutMs: 60_000,
};

type Answer = MemberResult | 'crashed' | 'ended';

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  /** Called after the process has answered the ping. */
  readonly onStarted: () => void;
  isStarting: boolean;
}

/** Starts the isolated process from `dist/`, or from source with the loader of this process. */
export function forkIsolated(): ChildProcess {
  const [extension = '.js'] = /\.[jt]s$/.exec(import.meta.url) ?? [];
  const path = fileURLToPath(new URL(`isolated-delivery${extension}`, import.meta.url));
  return fork(path, { serialization: 'advanced', env: environmentOfChild(process.env) });
}

/** Manages a child process that is started on demand and starts one email at a time. See `src/delivery/email/quarantine.ts`. */
export function makeIsolation(
  start: () => ChildProcess,
  log: Logger,
  times = TIMES,
): Isolation & { readonly stop: () => void } {
  const turns = makeSemaphore(1);
  let isolated: ReturnType<typeof open> | undefined;
  let idle: NodeJS.Timeout | undefined;

  function stop(): void {
    clearTimeout(idle);
    isolated?.stop();
    isolated = undefined;
  }

  return {
    async deliver(member, mayOverlap) {
      const release = await turns.take(1, { signal: AbortSignal.timeout(times.turnTimeoutMs) }).catch(() => undefined);
      if (!release) return 'busy';
      clearTimeout(idle);
      try {
        if (!isolated?.isAlive()) isolated = open(start(), log, times);
        return (await isolated.ready) ? await isolated.deliver(member, mayOverlap, release) : 'ended';
      } finally {
        release();
        clearTimeout(idle);
        if (!isolated?.isBusy()) idle = setTimeout(stop, times.idleTimeoutMs).unref();
      }
    },
    stop,
  };
}

function open(child: ChildProcess, log: Logger, times: IsolationTimes) {
  const pending = new Map<number, Pending>();
  /** Pings that are not answered, by their number. */
  const probes = new Map<number, (hasAnswered: boolean) => void>();
  let lastRequest = 0;
  let isAlive = true;
  let isStopped = false;
  const kill = (): void => void child.kill('SIGKILL');
  const send = (message: IsolatedRequest): void => {
    // The event `exit` reports failures.
    child.send(message, () => undefined);
  };
  const startTimer = setTimeout(kill, times.startTimeoutMs);

  const ready = new Promise<boolean>((resolve) => {
    child.on('message', (message: IsolatedMessage) => {
      if ('ready' in message) resolve(true);
      else handle(message);
    });
    const onEnd = (code: number | null, signal: NodeJS.Signals | null): void => {
      isAlive = false;
      resolve(false);
      if (!isStopped) log.warn({ code, signal, emails: pending.size }, 'isolated process ended');
      for (const { resolve: answer, isStarting } of pending.values()) {
        // The crash is attributed to the only email, or to the one that had just started.
        answer(!isStopped && (isStarting || pending.size === 1) ? 'crashed' : 'ended');
      }
      for (const answer of probes.values()) answer(false);
    };
    child.once('exit', onEnd);
    child.on('error', (error) => {
      log.error({ err: error }, 'isolated process failed');
      // A process that could not be started emits no `exit`.
      if (child.pid === undefined) onEnd(null, null);
    });
  });
  void ready.then(() => clearTimeout(startTimer));

  function handle(message: Exclude<IsolatedMessage, { ready: true }>): void {
    if ('topic' in message) FORWARDED_TOPICS[message.topic]?.publish(message.event);
    else if ('pong' in message) {
      const started = pending.get(message.pong);
      if (started) started.isStarting = false;
      started?.onStarted();
      probes.get(message.pong)?.(true);
    } else {
      const { resolve, reject } = pending.get(message.request) ?? {};
      pending.delete(message.request);
      if ('result' in message) resolve?.(message.result);
      else reject?.(new Error(message.error));
    }
  }

  /** Returns true if the process answers. One that an earlier email blocks is killed, before it gets another email. */
  function isResponsive(): Promise<boolean> {
    const ping = ++lastRequest;
    return new Promise((resolve) => {
      const timer = setTimeout(kill, times.hangTimeoutMs);
      probes.set(ping, (hasAnswered) => {
        clearTimeout(timer);
        probes.delete(ping);
        resolve(hasAnswered);
      });
      send({ ping });
    });
  }

  return {
    /** Resolves to false if the process ended before it was ready. */
    ready,
    isAlive: () => isAlive,
    isBusy: () => pending.size > 0,
    async deliver(member: Member, mayOverlap: boolean, onStarted: () => void): Promise<Answer> {
      if (pending.size > 0 && !(await isResponsive())) return 'ended';
      const request = ++lastRequest;
      const ping = setTimeout(() => send({ ping: request }), mayOverlap ? times.overlapPingDelayMs : times.pingDelayMs);
      const hang = setTimeout(() => {
        if (pending.get(request)?.isStarting) kill();
      }, times.hangTimeoutMs);
      try {
        return await new Promise<Answer>((resolve, reject) => {
          pending.set(request, { resolve, reject, onStarted, isStarting: true });
          if (isAlive) send({ request, member });
          else resolve('ended');
        });
      } finally {
        pending.delete(request);
        clearTimeout(ping);
        clearTimeout(hang);
      }
    },
    stop(): void {
      isStopped = true;
      if (child.connected) child.disconnect();
    },
  };
}
