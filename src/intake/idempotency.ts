import { ServiceError } from '../domain/errors.ts';
import { isDuplicate } from '../store/postgres/pool.ts';

/** Creates the error for the second of two concurrent requests with the same idempotency key. */
export function concurrentRequest(): ServiceError {
  return new ServiceError(
    'concurrent_idempotent_requests',
    'another request with this Idempotency-Key is running; try again when it has been answered',
  );
}

/** Creates the error for an idempotency key that was used with another body. */
export function reusedKey(): ServiceError {
  return new ServiceError('invalid_idempotent_request', 'this Idempotency-Key was used for another request');
}

/**
 * Converts a unique violation into `concurrent_idempotent_requests`. The advisory lock on an idempotency key is lost with its
 * database connection; then the unique index detects concurrent requests.
 */
export async function rejectReusedKey<T>(storing: Promise<T>): Promise<T> {
  return storing.catch((error: unknown) => {
    throw isDuplicate(error) ? concurrentRequest() : error;
  });
}
