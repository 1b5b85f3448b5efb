import type { FastifyInstance } from 'fastify';
import type { Standing } from '../domain/token-bucket.ts';
import type { RateLimit, RateLimits } from '../intake/rate-limits.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The bucket that refused the request; null while none has. */
    standing: Standing | null;
  }
}

/**
 * Tells in every authenticated answer, while any limit is on, where the organization's bucket stands (headers of
 * draft-ietf-httpapi-ratelimit-headers-06): that of requests, or that of emails where it refused the request or is alone.
 */
export function tellLimits(app: FastifyInstance, limits: RateLimits): void {
  app.decorateReply('standing', null);
  const told = limits.requests ?? limits.mails;
  if (!told) return;
  const policy = policies(limits);
  app.addHook('onSend', async ({ caller }, reply) => {
    if (!caller) return;
    const { limit, remaining, reset } = reply.standing ?? told.standing(caller.org_id);
    reply.headers({
      'ratelimit-limit': limit,
      'ratelimit-remaining': remaining,
      'ratelimit-reset': reset,
      'ratelimit-policy': policy,
    });
  });
}

/** All limits that are on: how many tokens a bucket holds, and in how many seconds they come in. */
function policies({ requests, mails }: RateLimits): string {
  const policy = ({ rate: { burst, perSecond } }: RateLimit, comment: string) =>
    `${burst};w=${Math.ceil(burst / perSecond)};comment="${comment}"`;
  return [requests && policy(requests, 'requests'), mails && policy(mails, 'emails')].filter(Boolean).join(', ');
}
