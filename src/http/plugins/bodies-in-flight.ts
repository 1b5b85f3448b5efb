import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Semaphore, makeSemaphore } from '../../lib/semaphore.ts';
import { ServiceError } from '../../domain/errors.ts';
import { networkOf } from '../../lib/ip-ranges.ts';
import { endSlowBodies } from './slow-bodies.ts';

/** Smaller bodies are not counted: a connection costs about as much. */
const UNCOUNTED_BYTES = 16_384;
/** Smallest body that counts against the budget of large ones. */
const LARGE_BYTES = 1_048_576;
/** Largest bodies that are processed concurrently. Each occupies up to four times its size. */
const LARGEST_IN_FLIGHT = 3;
/** Largest bodies of one organization, so that its slow uploads leave capacity for others. */
const LARGEST_OF_ONE = 2;
const SMALL_BUDGET_BYTES = 64 * 1_048_576;
/** All requests without a key share this budget. */
const PUBLIC_BUDGET_BYTES = 32 * 1_048_576;
/** Part of the public budget that one network may hold. */
const PUBLIC_SHARE = 1 / 4;
/** How long a request waits for its budget before it gets 503. */
const WAIT_MS = 60_000;
const PUBLIC_WAIT_MS = 5_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** The organization whose session authenticated the request; null for an API key or without authentication. */
    sessionOrgId: string | null;
  }
}

interface Budget {
  readonly limit: Semaphore;
  readonly waitMs: number;
  readonly holder: string;
}

/**
 * Bounds the memory of request bodies. A body above 16 KiB waits, unread, until its budget has capacity: one budget for
 * large bodies of authenticated callers, one for their small ones, and a small one for all requests without a key. A body
 * without a key must keep a minimum transfer rate; one with a key only while other callers wait for its budget.
 *
 * Runs after all `onRequest` hooks, so after authentication and guards, and before a byte of the body is read.
 */
export function limitBodiesInFlight(app: FastifyInstance, maxBodyBytes: number): void {
  const large = makeSemaphore(LARGEST_IN_FLIGHT * maxBodyBytes, LARGEST_OF_ONE * maxBodyBytes);
  const small = makeSemaphore(SMALL_BUDGET_BYTES, SMALL_BUDGET_BYTES / 2);
  const open = makeSemaphore(PUBLIC_BUDGET_BYTES, PUBLIC_BUDGET_BYTES * PUBLIC_SHARE);
  const watch = endSlowBodies(app);

  const budgetOf = (request: FastifyRequest, bytes: number): Budget => {
    const orgId = request.caller?.org_id ?? request.sessionOrgId;
    if (orgId === null) return { limit: open, waitMs: PUBLIC_WAIT_MS, holder: networkOf(request.ip) };
    return { limit: bytes > LARGE_BYTES ? large : small, waitMs: WAIT_MS, holder: orgId };
  };

  app.decorateRequest('sessionOrgId', null);
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const bytes = expectedBytes(request);
    const isOpen = request.caller === null && request.sessionOrgId === null;
    if (bytes <= UNCOUNTED_BYTES) {
      if (isOpen && bytes > 0) watch(request.raw, () => true);
      done();
      return;
    }
    const budget = budgetOf(request, bytes);
    hold(budget, bytes, reply).then(
      () => {
        watch(request.raw, () => isOpen || budget.limit.isContended());
        done();
      },
      (error: unknown) => done(error as Error),
    );
  });
}

/** Holds the bytes until the request is answered or the caller has hung up. */
async function hold({ limit, waitMs, holder }: Budget, bytes: number, reply: FastifyReply): Promise<void> {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(waitMs)]);
  const release = await limit.take(bytes, { signal, holder }).catch(() => {
    throw new ServiceError('unavailable', 'too many large requests at a time; try again');
  });
  if (reply.raw.closed) release();
  else reply.raw.once('close', release);
}

/** Returns the announced length of a body, or for a chunked one the limit of its route. */
function expectedBytes({ method, headers, routeOptions }: FastifyRequest): number {
  if (method === 'GET' || method === 'HEAD') return 0;
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit;
  return Number(headers['content-length'] ?? 0);
}
