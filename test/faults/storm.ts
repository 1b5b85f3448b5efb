import { setTimeout as sleep } from 'node:timers/promises';
import type { PartName } from '../../dev/environment/supervisor.ts';
import type { Fault, Scene } from './fault.ts';

const WAYS = ['api-postgres', 'api-temporal', 'worker-postgres', 'worker-temporal', 'worker-provider'] as const;
const BEHAVIOURS = [
  { fail_next: 20, status: 500 },
  { fail_next: 20, status: 429, retry_after: 1 },
  { latency_ms: 2_000 },
  { reset_after_accept: 2 },
  { garbage: 2 },
  { repeat_reports: 3, shuffle_reports: true },
] as const;

function one<T>({ random }: Scene, of: readonly T[]): T {
  return of[random.integer(0, of.length)] as T;
}

/** What one of the hands that stir the storm does next. Each process belongs to one hand, so that none is frozen and killed. */
async function stir(scene: Scene, parts: readonly PartName[]): Promise<void> {
  const { stack, random } = scene;
  const dice = random.between(0, 1);
  const part = one(scene, parts);
  if (dice < 0.3) stack.parts.kill(part);
  else if (dice < 0.45) await stack.parts.freeze(part, random.between(1_000, 8_000));
  else if (dice < 0.6) await stack.parts.away(part, random.between(1_000, 8_000));
  else if (dice < 0.8) stack.way(one(scene, WAYS)).cut();
  else await stack.behave(one(scene, BEHAVIOURS)).catch(() => undefined);
}

/** Several at once, again and again. */
export const storm: Fault = {
  what: 'several of them at once',
  stack: { ways: [...WAYS] },
  mix: { lines: 8, rest: 60 },
  async happen(scene) {
    const until = Date.now() + scene.minutes * 60_000;
    const hand = async (parts: readonly PartName[]) => {
      while (Date.now() < until) {
        await stir(scene, parts);
        await sleep(scene.random.between(500, 8_000));
        await scene.stack.parts.serving();
      }
    };
    await Promise.all([hand(['api', 'simulator']), hand(['worker', 'temporal']), hand(['postgres'])]);
  },
};
