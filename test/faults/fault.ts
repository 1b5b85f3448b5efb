import { setTimeout as sleep } from 'node:timers/promises';
import type { Generator, Mix } from './generator.ts';
import type { Random } from './random.ts';
import type { Receiver } from './receiver.ts';
import type { Stack, StackOptions } from './stack.ts';
import type { Watcher, TcpProxy } from './proxy.ts';
import type { Tenant } from './tenant.ts';

/** The stack and the parties that a fault can disturb while messages are sent. */
export interface FaultContext {
  readonly stack: Stack;
  readonly generator: Generator;
  /** Makes a further organization, whose messages count too. Its generator sends only what the fault posts. */
  readonly addTenant: () => Promise<{ readonly tenant: Tenant; readonly generator: Generator }>;
  readonly receiver: Receiver;
  readonly random: Random;
  /** How long a part is frozen, stopped or broken. */
  readonly durationMs: number;
  /** Duration of the long faults: a storm, and a blocked table. */
  readonly minutes: number;
  /** Adds a violation unless the condition holds. */
  readonly expect: (holds: boolean, sentence: string) => void;
  /** Prints a line with the run. */
  readonly print: (line: string) => void;
}

/** A disturbance that must not harm any message. */
export interface Fault {
  /** A sentence for the table of results. */
  readonly what: string;
  readonly stack?: Pick<StackOptions, 'proxies' | 'env' | 'files' | 'postgres'>;
  readonly mix?: Partial<Mix>;
  /** Set if it stops messages for longer than a verdict waits: earlier runs are judged before. */
  readonly isLong?: boolean;
  /** Injects it while messages are sent. Resolves at its end, or when nothing more is done about it. */
  readonly inject: (context: FaultContext) => Promise<void>;
  /** Prepares this machine, such as by mounting a disk. @returns the reason if the machine cannot run it */
  readonly missing?: () => string | undefined;
}

const TRAFFIC_TIMEOUT_MS = 20_000;

/** Waits for data that a proxy forwards. `matches` is called before the data is forwarded. */
export async function awaitTraffic(proxy: TcpProxy, matches: (...seen: Parameters<Watcher>) => boolean): Promise<void> {
  let stop: () => void = () => undefined;
  const seen = new Promise<void>((resolve) => {
    stop = proxy.watch((direction, data) => {
      if (matches(direction, data)) resolve();
    });
  });
  const late = sleep(TRAFFIC_TIMEOUT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the traffic was not seen within ${TRAFFIC_TIMEOUT_MS / 1_000} s`);
  });
  try {
    await Promise.race([seen, late]);
  } finally {
    stop();
  }
}

/** Acts at random intervals. */
export async function repeatedly(
  { random, durationMs }: Pick<FaultContext, 'random' | 'durationMs'>,
  between: readonly [number, number],
  act: () => void,
): Promise<void> {
  for (const until = Date.now() + durationMs; Date.now() < until;) {
    await sleep(random.between(...between));
    act();
  }
}
