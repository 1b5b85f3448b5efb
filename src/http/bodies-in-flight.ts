import type { FastifyInstance, FastifyRequest } from 'fastify';
import { makeByteLimit } from '../domain/byte-limit.ts';
import { ServiceError } from '../domain/errors.ts';

/** Bytes of a body that costs too little to be counted. */
const SMALL = 1_048_576;
/** Bodies of the largest size that may be read and worked on at a time; each is in memory up to four times over. */
const LARGEST_AT_ONCE = 3;
/** Of one organization: its slow uploads leave room for others'. */
const LARGEST_OF_ONE = 2;
/** Milliseconds that a request waits for its turn before it is told to come back. */
const PATIENCE = 60_000;

/**
 * Lets large bodies in a few at a time: the others wait, unread, until one is answered. Comes after the key was checked,
 * and before a byte of the body is read.
 */
export function limitBodiesInFlight(app: FastifyInstance, maxBodyBytes: number): void {
  const limit = makeByteLimit(LARGEST_AT_ONCE * maxBodyBytes, LARGEST_OF_ONE * maxBodyBytes);
  app.addHook('onRequest', async (request, reply) => {
    const bytes = expectedBytes(request, maxBodyBytes);
    if (bytes <= SMALL) return;
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(PATIENCE)]);
    const holder = request.caller?.org_id;
    const release = await limit.take(bytes, { signal, ...(holder !== undefined && { holder }) }).catch(() => {
      throw new ServiceError('unavailable', 'too many large requests at a time; try again');
    });
    if (reply.raw.closed) release();
    else reply.raw.once('close', release);
  });
}

/** What a request says of itself; one that says nothing may become as large as any. */
function expectedBytes({ headers }: FastifyRequest, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Number(headers['content-length'] ?? 0);
}
