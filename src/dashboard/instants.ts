import { ServiceError } from '../domain/errors.ts';
import { parseInstant } from '../domain/instant.ts';

/** As a field of the type `datetime-local` gives it: no offset, seconds only when they are not 0. */
const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/;

/**
 * What was chosen in a field for a day and a time, whose label says that it is in UTC: the reader's own zone is not known.
 * @returns an instant as the API writes it
 * @throws ServiceError validation_error
 */
export function utcInstant(text: string, param: string): string {
  const instant = LOCAL.test(text) ? parseInstant(`${text}Z`) : undefined;
  if (!instant) throw new ServiceError('validation_error', 'is not a day and time', param);
  return instant.toISOString();
}
