import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Standing } from '../../lib/token-bucket.ts';
import type { RateLimit, RateLimits } from '../../intake/rate-limits.ts';
import type { ApiKey } from '../../store/accounts/keys.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The bucket that let the request in or refused it; null while none has. */
    standing: Standing | null;
  }
}

/**
 * Counts a request.
 * @throws RateLimitExceeded
 */
export function limitRequests({ requests }: RateLimits, { org_id: orgId }: ApiKey, reply: FastifyReply): void {
  if (!requests) return;
  requests.take(orgId, 1);
  // As of now: some may flow back until it is answered, and who asked would seem to have asked for nothing.
  reply.standing = requests.standing(orgId);
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
