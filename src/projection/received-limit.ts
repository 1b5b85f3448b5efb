import { callbacksDropped } from '../telemetry/topics.ts';

/** Limits the messages of users that are kept for one number. Both methods return 0 while the number may receive more. */
export interface ReceivedLimit {
  readonly check: (number: string) => number;
  /** Counts a message. */
  readonly take: (number: string) => number;
}

export const UNLIMITED_RECEIVED: ReceivedLimit = { check: () => 0, take: () => 0 };

/** Returns true if another message to a number is kept. Otherwise it counts the message as dropped. */
export function isWithin(limit: ReceivedLimit, number: string): boolean {
  if (limit.check(number) === 0) return true;
  callbacksDropped.publish({ reason: 'received', count: 1 });
  return false;
}
