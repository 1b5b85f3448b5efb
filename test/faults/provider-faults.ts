import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

/** The provider misbehaves for a while; see the simulator's Behaviour. */
function setBehaviour(what: string, behaviour: object): Fault {
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
function failSomeCalls(what: string, name: string): Fault {
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
  'provider-500': setBehaviour('the provider answers 500', { fail_next: true, status: 500 }),
  'provider-503': setBehaviour('the provider answers 503', { fail_next: true, status: 503 }),
  'provider-429': setBehaviour('the provider answers 429', { fail_next: true, status: 429, retry_after: 1 }),
  'provider-slow': setBehaviour('the provider takes 3 s', { latency_ms: 3_000 }),
  'provider-hangs': failSomeCalls('the provider takes it and never answers', 'hang'),
  'provider-resets': failSomeCalls('the provider takes it and resets', 'reset_after_accept'),
  'provider-resets-before': failSomeCalls('the provider resets and takes nothing', 'reset_before_accept'),
  'provider-500-taken': failSomeCalls('the provider takes it and answers 500', 'fail_after_accept'),
  'provider-garbage': failSomeCalls('the provider takes it and answers HTML', 'garbage'),
  'callbacks-shuffled': setBehaviour('reports come six times, in any order', {
    repeat_reports: 5,
    shuffle_reports: true,
  }),
};
