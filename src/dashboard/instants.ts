import { ServiceError } from '../domain/errors.ts';
import { parseInstant } from '../domain/instant.ts';

/** The format of a `datetime-local` field: no offset, seconds only if they are not 0. */
const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/;

/**
 * Reads a date and time field that is labelled as UTC, since the reader's time zone is unknown.
 * @returns an instant as the API writes it
 * @throws ServiceError validation_error
 */
export function utcInstant(text: string, param: string): string {
  const instant = LOCAL.test(text) ? parseInstant(`${text}Z`) : undefined;
  if (!instant) throw new ServiceError('validation_error', 'is not a day and time', param);
  return instant.toISOString();
}
