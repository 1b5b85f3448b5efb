import { setTimeout as sleep } from 'node:timers/promises';
import type { Generator, Mix } from './generator.ts';
import type { Random } from './random.ts';
import type { Receiver } from './receiver.ts';
import type { Stack, StackOptions } from './stack.ts';
import type { Watcher, TcpProxy } from './proxy.ts';

/** What a fault can reach while messages are being sent. */
export interface FaultContext {
  readonly stack: Stack;
  readonly generator: Generator;
  readonly receiver: Receiver;
  readonly random: Random;
  /** Milliseconds that something is frozen, away or broken. */
  readonly lasts: number;
  /** That a storm goes on. */
  readonly minutes: number;
  /** Adds to what is wrong unless it is as it should be. */
  readonly demand: (holds: boolean, sentence: string) => void;
}

/** Something that goes wrong, and must harm no message. */
export interface Fault {
  /** A sentence for the table of results. */
  readonly what: string;
  readonly stack?: Pick<StackOptions, 'proxies' | 'env' | 'files' | 'postgres'>;
  readonly mix?: Partial<Mix>;
  /** Does it, while messages are sent. Resolves when it is over, or when nothing more is done about it. */
  readonly happen: (context: FaultContext) => Promise<void>;
  /** Why it cannot be tried on this machine. */
  readonly missing?: () => string | undefined;
}

/** Milliseconds after which a moment that was waited for is taken not to come. */
const MOMENT_WITHIN = 20_000;

/** Waits until something passes a proxy. The watcher decides in the moment itself, before it goes on. */
export async function awaitTraffic(proxy: TcpProxy, isNow: (...seen: Parameters<Watcher>) => boolean): Promise<void> {
  let stop: () => void = () => undefined;
  const seen = new Promise<void>((resolve) => {
    stop = proxy.watch((direction, data) => {
      if (isNow(direction, data)) resolve();
    });
  });
  const late = sleep(MOMENT_WITHIN, undefined, { ref: false }).then(() => {
    throw new Error(`the moment did not come within ${MOMENT_WITHIN / 1_000} s`);
  });
  try {
    await Promise.race([seen, late]);
  } finally {
    stop();
  }
}

/** Does something again and again, at random intervals. */
export async function repeatedly(
  { random, lasts }: Pick<FaultContext, 'random' | 'lasts'>,
  between: readonly [number, number],
  act: () => void,
): Promise<void> {
  for (const until = Date.now() + lasts; Date.now() < until;) {
    await sleep(random.between(...between));
    act();
  }
}
