import { newDkimKey } from '../domain/senders/dkim.ts';
import { ServiceError } from '../domain/errors.ts';
import { makeFairSlots } from '../lib/fair-slots.ts';

/** Keys of all organizations that may wait. */
const MAX_WAITING_KEYS = 100;

/**
 * Generating an RSA key occupies a thread of libuv's pool for some 100 ms and more. The process has four such threads,
 * and passwords, files and names of hosts need them, too: keys take one at a time.
 */
const slots = makeFairSlots({
  slots: 1,
  maxWaiting: MAX_WAITING_KEYS,
  refuse: () => new ServiceError('unavailable', 'too many DKIM keys are being made'),
});

/** A new DKIM key. Organizations wait in rotation. @throws ServiceError unavailable when too many keys are waited for */
export function makeDkimKey(orgId: string): ReturnType<typeof newDkimKey> {
  return slots.run(orgId, newDkimKey);
}
