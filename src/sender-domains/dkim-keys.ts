import { newDkimKey } from '../domain/senders/dkim.ts';
import { ServiceError } from '../domain/errors.ts';
import { makeFairSlots } from '../lib/fair-slots.ts';

/** Waiting keys of all organizations. */
const MAX_WAITING_KEYS = 100;

/**
 * Generating an RSA key occupies a thread of libuv's pool for 100 ms and more. The process has four such threads, which
 * passwords, files and host lookups also need: keys use one at a time.
 */
const slots = makeFairSlots({
  slots: 1,
  maxWaiting: MAX_WAITING_KEYS,
  refuse: () => new ServiceError('unavailable', 'too many DKIM keys are being made'),
});

/** Generates a DKIM key. Organizations wait in rotation. @throws ServiceError unavailable when too many keys are pending */
export function makeDkimKey(orgId: string): ReturnType<typeof newDkimKey> {
  return slots.run(orgId, newDkimKey);
}
