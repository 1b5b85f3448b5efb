import { notFound, ServiceError } from '../domain/errors.ts';
import { parseInstant, SCHEDULE_PROBLEMS } from '../domain/instant.ts';
import { MESSAGE_NAMES, type MessageChannel } from '../domain/messages/message.ts';
import { statusOf, whyUnmoved } from '../store/emails/emails.ts';
import type { Db } from '../store/postgres/pool.ts';

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

/** Creates the error for a change of an email or message that is not scheduled. */
export function notScheduled(one: 'an email' | 'a message', status: string): ServiceError {
  const message = `only ${one} that is still scheduled can be moved or canceled; this one is ${status}`;
  return new ServiceError('not_scheduled', message);
}

/**
 * Creates the error for an email or message that could not be rescheduled or canceled.
 * @param scheduledAt the requested time; null for a cancellation
 * @param channel of a message; undefined for an email
 */
export async function scheduleChangeError(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string | null,
  channel?: MessageChannel,
): Promise<ServiceError> {
  const reason = await whyUnmoved(db, orgId, id, scheduledAt, channel);
  if (reason === 'not_found') return notFound(channel ? MESSAGE_NAMES[channel] : 'email');
  if (reason === 'not_scheduled') {
    const status = await statusOf(db, orgId, id, channel);
    return notScheduled(channel ? 'a message' : 'an email', status ?? 'gone');
  }
  return scheduleError(reason);
}
