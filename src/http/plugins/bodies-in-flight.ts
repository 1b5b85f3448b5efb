import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { makeClosedSignal, onceClosed } from '../../lib/closed-signal.ts';
import { makeDeadline } from '../../lib/deadline.ts';
import { type Semaphore, makeSemaphore } from '../../lib/semaphore.ts';
import { ServiceError } from '../../domain/errors.ts';
import { networkOf } from '../../lib/ip-ranges.ts';
import { endSlowBodies } from './slow-bodies.ts';

/** Bodies up to this size are not counted, because a connection costs about as much memory. */
const UNCOUNTED_BYTES = 16_384;
/** Larger bodies count against the budget of large ones. */
const LARGE_BYTES = 1_048_576;
/** The budget of large bodies, in bodies of the maximum size. A body occupies up to four times its size while it is processed. */
const LARGE_BUDGET_BODIES = 3;
/** The share of one organization, in bodies of the maximum size. Its slow uploads leave capacity for others. */
const LARGE_SHARE_BODIES = 2;
const SMALL_BUDGET_BYTES = 64 * 1_048_576;
/** The budget of all requests without a key. */
const PUBLIC_BUDGET_BYTES = 32 * 1_048_576;
/** The share of one network in the public budget. */
const PUBLIC_SHARE = 1 / 4;
/** The maximum time that a request waits for its budget before the response 503. */
const MAX_WAIT_MS = 60_000;
const MAX_PUBLIC_WAIT_MS = 5_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** The organization whose dashboard session authenticated the request; null for an API key or without authentication. */
    sessionOrgId: string | null;
  }
}

interface Budget {
  readonly limit: Semaphore;
  readonly waitMs: number;
  readonly holder: string;
}

/**
 * Limits the memory of request bodies. A body above 16 KiB is not read until its budget has capacity. There is a budget for large
 * bodies of authenticated callers, one for their small bodies, and a small one for all requests without a key. A body without a
 * key must always meet the minimum transfer rate; one with a key only while other callers wait for the same budget.
 * Runs after all `onRequest` hooks, therefore after authentication and guards, and before the body is read.
 */
export function limitBodiesInFlight(app: FastifyInstance, maxBodyBytes: number): void {
  const largeBudget = makeSemaphore(LARGE_BUDGET_BODIES * maxBodyBytes, LARGE_SHARE_BODIES * maxBodyBytes);
  const smallBudget = makeSemaphore(SMALL_BUDGET_BYTES, SMALL_BUDGET_BYTES / 2);
  const publicBudget = makeSemaphore(PUBLIC_BUDGET_BYTES, PUBLIC_BUDGET_BYTES * PUBLIC_SHARE);
  const watch = endSlowBodies(app);

  const budgetOf = (orgId: string | null, ip: string, bytes: number): Budget => {
    if (orgId === null) return { limit: publicBudget, waitMs: MAX_PUBLIC_WAIT_MS, holder: networkOf(ip) };
    return { limit: bytes > LARGE_BYTES ? largeBudget : smallBudget, waitMs: MAX_WAIT_MS, holder: orgId };
  };

  app.decorateRequest('sessionOrgId', null);
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const bytes = expectedBytes(request);
    const orgId = request.caller?.org_id ?? request.sessionOrgId;
    const isPublic = orgId === null;
    if (bytes <= UNCOUNTED_BYTES) {
      if (isPublic && bytes > 0) watch(request.raw, () => true);
      done();
      return;
    }
    const budget = budgetOf(orgId, request.ip, bytes);
    reserve(budget, bytes, reply).then(
      () => {
        watch(request.raw, () => isPublic || budget.limit.isContended());
        done();
      },
      (error: unknown) => done(error as Error),
    );
  });
}

/** Reserves the bytes until the response is sent or the caller disconnects. */
async function reserve({ limit, waitMs, holder }: Budget, bytes: number, reply: FastifyReply): Promise<void> {
  const signal = makeDeadline(waitMs, [makeClosedSignal(reply)]);
  const release = await limit.take(bytes, { signal, holder }).catch(() => {
    throw new ServiceError('unavailable', 'too many large requests at a time; try again');
  });
  onceClosed(reply, release);
}

/** Returns the Content-Length of a body, or for a chunked body the limit of its route. */
function expectedBytes({ method, headers, routeOptions }: FastifyRequest): number {
  if (method === 'GET' || method === 'HEAD') return 0;
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit;
  return Number(headers['content-length'] ?? 0);
}
