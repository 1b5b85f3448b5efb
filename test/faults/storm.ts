import { setTimeout as sleep } from 'node:timers/promises';
import type { PartName } from '../../src/main/dev-file.ts';
import type { Fault, FaultContext } from './fault.ts';

const PROXIES = ['api-postgres', 'api-temporal', 'worker-postgres', 'worker-temporal', 'worker-provider'] as const;
const BEHAVIOURS = [
  { fail_next: 20, status: 500 },
  { fail_next: 20, status: 429, retry_after: 1 },
  { latency_ms: 2_000 },
  { reset_after_accept: 2 },
  { garbage: 2 },
  { repeat_reports: 3, shuffle_reports: true },
] as const;

function one<T>({ random }: FaultContext, of: readonly T[]): T {
  return of[random.integer(0, of.length)] as T;
}

/** A random disturbance. Each process belongs to one disturber, so that none is frozen and killed concurrently. */
async function injectDisturbance(context: FaultContext, parts: readonly PartName[]): Promise<void> {
  const { stack, random } = context;
  const dice = random.between(0, 1);
  const part = one(context, parts);
  if (dice < 0.3) stack.parts.kill(part);
  else if (dice < 0.45) await stack.parts.freeze(part, random.between(1_000, 8_000));
  else if (dice < 0.6) await stack.parts.stopFor(part, random.between(1_000, 8_000));
  else if (dice < 0.8) stack.proxy(one(context, PROXIES)).cut();
  else await stack.setBehaviour(one(context, BEHAVIOURS)).catch(() => undefined);
}

/** Several concurrent disturbances. */
export const storm: Fault = {
  what: 'several of them together',
  stack: { proxies: [...PROXIES] },
  mix: { lines: 8, rest: 60 },
  async inject(context) {
    const until = Date.now() + context.minutes * 60_000;
    const disturber = async (parts: readonly PartName[]) => {
      while (Date.now() < until) {
        await injectDisturbance(context, parts);
        await sleep(context.random.between(500, 8_000));
        await context.stack.parts.serving();
      }
    };
    await Promise.all([disturber(['api', 'simulator']), disturber(['worker', 'temporal']), disturber(['postgres'])]);
  },
};
