import { makeSemaphore, type Semaphore } from '../lib/semaphore.ts';

/** Transactions of batches at a time. Each holds one of the 16 database connections of an API for acceptance and changes for seconds. */
const MAX_BATCHES = 8;
const MAX_BATCHES_PER_ORGANIZATION = 4;

/** Slots for the transactions that store or cancel a batch. They wait here without a connection, so that others get one. */
export function makeBatchSlots(): Semaphore {
  return makeSemaphore(MAX_BATCHES, MAX_BATCHES_PER_ORGANIZATION);
}
