import { ServiceError } from '../domain/errors.ts';
import { isDuplicate } from '../store/postgres/pool.ts';

/** The error for the second of two concurrent requests with the same idempotency key. */
export function concurrentRequest(): ServiceError {
  return new ServiceError(
    'concurrent_idempotent_requests',
    'another request with this Idempotency-Key is running; try again when it has been answered',
  );
}

/** The error for a request whose idempotency key was used for a request with another body. */
export function reusedKey(): ServiceError {
  return new ServiceError('invalid_idempotent_request', 'this Idempotency-Key was used for another request');
}

/**
 * Refuses a request whose idempotency key was used while its email was stored: a lock is lost with its database connection,
 * and then the table decides which request was first.
 */
export async function rejectReusedKey<T>(storing: Promise<T>): Promise<T> {
  return storing.catch((error: unknown) => {
    throw isDuplicate(error) ? concurrentRequest() : error;
  });
}
