import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '../../domain/errors.ts';
import { IDEMPOTENCY_KEY_LENGTH } from '../../domain/limits.ts';
import { characters } from '../../lib/text.ts';
import { concurrentRequest, reusedKey } from '../../intake/idempotency.ts';
import { type IdempotencyKey, makeKeyLocks, type Unlock } from '../../store/limits/idempotency.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { fingerprint } from './fingerprint.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The request's idempotency key, locked until the response is sent; undefined without the header. */
    idempotency: IdempotencyKey | undefined;
    unlockKey: Unlock | undefined;
  }
}

/**
 * Handles Idempotency-Key on every route whose schema has the header: returns the stored response, or locks the key until the
 * response is sent. It runs after the body is read and before validation, so that a response is repeated even if the same request
 * would now be refused.
 */
export function registerIdempotency(app: FastifyInstance, pool: Pool): void {
  const keys = makeKeyLocks(pool);
  app.decorateRequest('idempotency', undefined);
  app.decorateRequest('unlockKey', undefined);
  app.addHook('preValidation', async (request, reply) => {
    const { method, body, routeOptions } = request;
    if (!routeOptions.schema?.headers) return;
    const key = keyOf(request);
    if (key === undefined) return;
    const bodyFingerprint = await fingerprint(method, routeOptions.url ?? '', body);
    const lock = await keys.lock(request.orgId, key);
    if (lock.kind === 'in_progress') throw concurrentRequest();
    if (lock.kind === 'locked') {
      request.idempotency = { key, fingerprint: bodyFingerprint };
      request.unlockKey = lock.unlock;
      return;
    }
    if (!lock.response.fingerprint.equals(bodyFingerprint)) throw reusedKey();
    reply.code(202).header('idempotent-replayed', 'true');
    return reply.send(lock.response.body);
  });
  app.addHook('onSend', async (request, reply) => {
    const unlocked = request.unlockKey?.();
    // After 202 the response is stored and found by its key, so there is no need to wait for the unlock.
    if (reply.statusCode !== 202) await unlocked;
  });
}

/** @throws ServiceError invalid_idempotency_key */
function keyOf(request: FastifyRequest): string | undefined {
  if (request.headers['idempotency-key'] === undefined) return undefined;
  // Node would otherwise join repeated headers.
  const values = request.raw.headersDistinct['idempotency-key'] ?? [];
  const [header = ''] = values;
  if (values.length > 1) throw new ServiceError('invalid_idempotency_key', 'Idempotency-Key may be given once');
  // Node decodes header bytes as Latin-1; most clients send UTF-8.
  const bytes = Buffer.from(header, 'latin1');
  const key = isUtf8(bytes) ? bytes.toString() : header;
  if (key === '' || characters(key) > IDEMPOTENCY_KEY_LENGTH) {
    throw new ServiceError(
      'invalid_idempotency_key',
      `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_LENGTH} characters`,
    );
  }
  return key;
}
