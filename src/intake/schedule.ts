import { notFound, ServiceError } from '../domain/errors.ts';
import { parseInstant, SCHEDULE_PROBLEMS } from '../domain/instant.ts';
import type { UnmovedReason } from '../store/emails/emails.ts';

/** Converts `scheduled_at` of a request to UTC. @throws ServiceError validation_error */
export function parseSchedule(text: string): string {
  const date = parseInstant(text);
  if (!date) throw scheduleError('form');
  return date.toISOString();
}

/** Creates the error for a `scheduled_at` that is not allowed. */
export function scheduleError(problem: keyof typeof SCHEDULE_PROBLEMS): ServiceError {
  return new ServiceError('validation_error', SCHEDULE_PROBLEMS[problem], 'scheduled_at');
}

/**
 * Creates the error for an email or message that could not be rescheduled or canceled.
 * @param name its noun
 * @param one its noun with the article
 */
export function scheduleChangeError(reason: UnmovedReason, name: string, one: string): ServiceError {
  if (reason === 'not_found') return notFound(name);
  if (reason !== 'not_scheduled') return scheduleError(reason);
  return new ServiceError('not_scheduled', `only ${one} that is still scheduled can be moved or canceled`);
}
