import type { FastifyInstance, FastifyReply } from 'fastify';
import type { BucketState } from '../../lib/token-bucket.ts';
import type { RateLimit, RateLimits } from '../../intake/rate-limits.ts';
import type { ApiKey } from '../../store/accounts/keys.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The state of the bucket after this request was admitted or refused; null before that. */
    rateLimitState: BucketState | null;
  }
}

/**
 * Counts a request.
 * @throws RateLimitExceeded
 */
export function limitRequests({ requests }: RateLimits, { org_id: orgId }: ApiKey, reply: FastifyReply): void {
  if (!requests) return;
  requests.take(orgId, 1);
  // Read the state now: tokens refill until the response is sent, so the request would seem to cost nothing.
  reply.rateLimitState = requests.state(orgId);
}

/**
 * Adds the state of the organization's bucket to every authenticated response while a limit is set
 * (draft-ietf-httpapi-ratelimit-headers-06). It is the bucket of requests, or that of emails if that refused the request or is
 * the only one.
 */
export function reportRateLimits(app: FastifyInstance, limits: RateLimits): void {
  app.decorateReply('rateLimitState', null);
  const reported = limits.requests ?? limits.mails;
  if (!reported) return;
  const policy = policies(limits);
  app.addHook('onSend', async ({ caller }, reply) => {
    if (!caller) return;
    const { limit, remaining, resetSeconds: reset } = reply.rateLimitState ?? reported.state(caller.org_id);
    reply.headers({
      'ratelimit-limit': limit,
      'ratelimit-remaining': remaining,
      'ratelimit-reset': reset,
      'ratelimit-policy': policy,
    });
  });
}

/** Lists the reported limits: the capacity of each bucket and the seconds in which it refills. */
function policies({ requests, mails }: RateLimits): string {
  const policy = ({ rate: { burst, perSecond } }: RateLimit, comment: string) =>
    `${burst};w=${Math.ceil(burst / perSecond)};comment="${comment}"`;
  return [requests && policy(requests, 'requests'), mails && policy(mails, 'emails')].filter(Boolean).join(', ');
}
