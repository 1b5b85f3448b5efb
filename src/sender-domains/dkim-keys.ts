import { newDkimKey } from '../domain/senders/dkim.ts';
import { ServiceError } from '../domain/errors.ts';
import { makeFairSlots } from '../lib/fair-slots.ts';

/** The maximum number of waiting key generations, of all organizations together. */
const MAX_WAITING_KEYS = 100;

/**
 * Limits key generation to one at a time. An RSA key occupies a thread of libuv's pool for at least 100 ms. The process has four
 * such threads, which passwords, files and host lookups also need.
 */
const slots = makeFairSlots({
  slots: 1,
  maxWaiting: MAX_WAITING_KEYS,
  refuse: () => new ServiceError('unavailable', 'too many DKIM keys are being made'),
});

/** Generates a DKIM key. Organizations wait in rotation. @throws ServiceError unavailable if too many keys are pending */
export function makeDkimKey(orgId: string): ReturnType<typeof newDkimKey> {
  return slots.run(orgId, newDkimKey);
}
