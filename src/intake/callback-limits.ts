import { ServiceError } from '../domain/errors.ts';
import { type ReceivedLimit, UNLIMITED_RECEIVED } from '../projection/received-limit.ts';
import { callbacksDropped } from '../telemetry/topics.ts';
import { makeKeyedBuckets } from './keyed-buckets.ts';

const LIMITS = { perSecond: 50, perDay: 100_000, messagesPerDay: 0 };
const BURST_SECONDS = 5;
const DAY_SECONDS = 86_400;

/**
 * Limits what is stored of callbacks that an organization's own token signs: the organization knows the token and can sign any form.
 * Reports about its messages are not limited, since a message has few.
 */
export interface CallbackLimits {
  /** Counts a callback of a number. @throws ServiceError rate_limit_exceeded */
  readonly take: (number: string) => void;
  /** Limits the messages of users, whoever signs their callbacks: anybody can write to a number. */
  readonly messages: ReceivedLimit;
}

/**
 * Makes the limits of this process: token buckets per number for a burst and for a day.
 * @param limits `messagesPerDay`: messages of users that are kept for one number; 0 means no limit
 */
export function makeCallbackLimits(limits: Partial<typeof LIMITS> = {}): CallbackLimits {
  const { perSecond, perDay, messagesPerDay } = { ...LIMITS, ...limits };
  const daily = (tokens: number) => makeKeyedBuckets({ perSecond: tokens / DAY_SECONDS, burst: tokens });
  const buckets = [makeKeyedBuckets({ perSecond, burst: perSecond * BURST_SECONDS }), daily(perDay)];
  return {
    take(number) {
      for (const bucket of buckets) {
        const waitSeconds = bucket.take(number);
        if (waitSeconds === 0) continue;
        callbacksDropped.publish({ reason: 'rate', count: 1 });
        const message = `more than ${perSecond} callbacks a second of this number, or ${perDay} a day`;
        throw new ServiceError('rate_limit_exceeded', message, undefined, waitSeconds);
      }
    },
    messages: messagesPerDay === 0 ? UNLIMITED_RECEIVED : daily(messagesPerDay),
  };
}
