import { ServiceError } from '../domain/errors.ts';
import { isDuplicate } from '../store/postgres/pool.ts';

/** Two requests with one idempotency key: this one came second, and the first has not been answered. */
export function concurrent(): ServiceError {
  return new ServiceError(
    'concurrent_idempotent_requests',
    'another request with this Idempotency-Key is running; try again when it has been answered',
  );
}

/**
 * Refuses when the key of a request has been used while it was stored: a key's holder loses it with its database
 * connection, and then the table alone decides who was first.
 */
export async function unlessUsed<T>(storing: Promise<T>): Promise<T> {
  return storing.catch((error: unknown) => {
    throw isDuplicate(error) ? concurrent() : error;
  });
}
