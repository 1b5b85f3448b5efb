import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

/** The provider misbehaves for a while; see the simulator's Behaviour. */
function behaves(what: string, behaviour: object): Fault {
  return {
    what,
    async inject({ stack, durationMs }) {
      await stack.setBehaviour(behaviour);
      await sleep(durationMs);
      await stack.setBehaviour({});
    },
  };
}

/** Some separate calls fail. */
function some(what: string, name: string): Fault {
  return {
    what,
    async inject({ stack, random }) {
      for (let i = 0; i < 5; i++) {
        await stack.setBehaviour({ [name]: 1 });
        await sleep(random.between(50, 600));
      }
      await stack.setBehaviour({});
    },
  };
}

export const providerFaults: Readonly<Record<string, Fault>> = {
  'provider-500': behaves('the provider answers 500', { fail_next: true, status: 500 }),
  'provider-503': behaves('the provider answers 503', { fail_next: true, status: 503 }),
  'provider-429': behaves('the provider answers 429', { fail_next: true, status: 429, retry_after: 1 }),
  'provider-slow': behaves('the provider takes 3 s', { latency_ms: 3_000 }),
  'provider-hangs': some('the provider takes it and never answers', 'hang'),
  'provider-resets': some('the provider takes it and resets', 'reset_after_accept'),
  'provider-resets-before': some('the provider resets and takes nothing', 'reset_before_accept'),
  'provider-500-taken': some('the provider takes it and answers 500', 'fail_after_accept'),
  'provider-garbage': some('the provider takes it and answers HTML', 'garbage'),
  'callbacks-shuffled': behaves('reports come six times, in any order', { repeat_reports: 5, shuffle_reports: true }),
};
