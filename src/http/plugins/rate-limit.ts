import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Standing } from '../../lib/token-bucket.ts';
import type { RateLimit, RateLimits } from '../../intake/rate-limits.ts';
import type { ApiKey } from '../../store/accounts/keys.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The bucket that admitted or refused the request; null before that. */
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
  // Read now: tokens refill until the response, and the request would seem to have cost nothing.
  reply.standing = requests.standing(orgId);
}

/**
 * Reports the organization's bucket in every authenticated response while a limit is set (headers of
 * draft-ietf-httpapi-ratelimit-headers-06): the bucket of requests, or that of emails if it refused the request or is the
 * only one.
 */
export function reportRateLimits(app: FastifyInstance, limits: RateLimits): void {
  app.decorateReply('standing', null);
  const reported = limits.requests ?? limits.mails;
  if (!reported) return;
  const policy = policies(limits);
  app.addHook('onSend', async ({ caller }, reply) => {
    if (!caller) return;
    const { limit, remaining, resetSeconds: reset } = reply.standing ?? reported.standing(caller.org_id);
    reply.headers({
      'ratelimit-limit': limit,
      'ratelimit-remaining': remaining,
      'ratelimit-reset': reset,
      'ratelimit-policy': policy,
    });
  });
}

/** Lists all limits: the burst of each bucket and the seconds in which it refills. */
function policies({ requests, mails }: RateLimits): string {
  const policy = ({ rate: { burst, perSecond } }: RateLimit, comment: string) =>
    `${burst};w=${Math.ceil(burst / perSecond)};comment="${comment}"`;
  return [requests && policy(requests, 'requests'), mails && policy(mails, 'emails')].filter(Boolean).join(', ');
}
