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

/** A call to an SMTP server without a reply takes ten minutes, as long as a verdict waits. */
const WITHOUT_SMTP = { large: 0 };
/** Emails of the organization that gets no replies: several times its share of the connections. */
const UNANSWERED = 100;
/** Emails of others reach the SMTP server within this time, on a busy machine. */
const OTHERS_WAIT_MS = 20_000;

/** The connections break in the end, so that the calls end before their timeout of ten minutes. Some runs last until the breaker trips. */
const unansweredSmtp: Fault = {
  what: "an SMTP server takes one organization's messages and never replies, up to 75 s",
  stack: { proxies: ['worker-smtp'] },
  mix: { large: 0.3, rest: 250 },
  async inject({ stack, generator, addTenant, random, expect, print }) {
    const proxy = stack.proxy('worker-smtp');
    const { tenant, generator: unanswered } = await addTenant();
    const count = async (condition: string) => {
      const counted = `SELECT count(*)::int FROM emails WHERE created_at >= $2 AND ${condition}`;
      const { rows } = await stack.pool.query<{ count: number }>(counted, [tenant.orgId, began]);
      return rows[0]?.count ?? 0;
    };
    const began = new Date();
    // The headers follow the reply to DATA.
    const end = proxy.mute((data) => data.includes(`From: ${tenant.from}`));
    await Promise.all(Array.from({ length: UNANSWERED }, () => unanswered.postLarge(true)));
    for (const until = Date.now() + random.between(10_000, 75_000); Date.now() < until;) {
      await generator.postLarge(true);
      await sleep(1_000);
    }
    const called = await count(
      `org_id = $1 AND EXISTS (SELECT FROM attempts WHERE message_id = emails.id AND handed_over)`,
    );
    expect(called > 0, 'calls without a reply were under way');
    const late = await count(
      `org_id <> $1 AND status = 'queued' AND created_at < now() - interval '${OTHERS_WAIT_MS} ms'`,
    );
    expect(late === 0, `emails of others wait behind those without a reply: ${late}`);
    print(`  ${called} of ${UNANSWERED} calls got no reply`);
    end();
    proxy.cut();
  },
};

export const providerFaults: Readonly<Record<string, Fault>> = {
  'provider-500': setBehaviour('the provider answers 500', { fail_next: true, status: 500 }),
  'provider-503': setBehaviour('the provider answers 503', { fail_next: true, status: 503 }),
  'provider-429': setBehaviour('the provider answers 429', { fail_next: true, status: 429, retry_after: 1 }),
  'provider-slow': setBehaviour('the provider takes 3 s', { latency_ms: 3_000 }),
  'provider-hangs': { ...failSomeCalls('the provider takes it and never answers', 'hang'), mix: WITHOUT_SMTP },
  'provider-unanswered': {
    ...setBehaviour('the provider takes everything and answers nothing', { hang: true }),
    mix: WITHOUT_SMTP,
  },
  'smtp-unanswered': unansweredSmtp,
  'provider-resets': failSomeCalls('the provider takes it and resets', 'reset_after_accept'),
  'provider-resets-before': failSomeCalls('the provider resets and takes nothing', 'reset_before_accept'),
  'provider-500-taken': failSomeCalls('the provider takes it and answers 500', 'fail_after_accept'),
  'provider-garbage': failSomeCalls('the provider takes it and answers HTML', 'garbage'),
  'callbacks-shuffled': setBehaviour('reports come six times, in any order', {
    repeat_reports: 5,
    shuffle_reports: true,
  }),
};
