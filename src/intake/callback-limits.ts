import { ServiceError } from '../domain/errors.ts';
import { makeKeyedBuckets } from './keyed-buckets.ts';
import { callbacksDropped } from '../telemetry/topics.ts';

const LIMITS = { perSecond: 50, perDay: 100_000 };
const BURST_SECONDS = 5;
const DAY_SECONDS = 86_400;

/**
 * Limits what is stored of callbacks that an organization's own token signs: the organization knows the token and can sign any form.
 * Reports about its messages are not limited, since a message has few.
 */
export interface CallbackLimits {
  /** Counts a callback of a number. @throws ServiceError rate_limit_exceeded */
  readonly take: (number: string) => void;
}

/** Makes the limits of this process: token buckets per number for a burst and for a day. */
export function makeCallbackLimits({ perSecond, perDay } = LIMITS): CallbackLimits {
  const limits = [
    makeKeyedBuckets({ perSecond, burst: perSecond * BURST_SECONDS }),
    makeKeyedBuckets({ perSecond: perDay / DAY_SECONDS, burst: perDay }),
  ];
  return {
    take(number) {
      for (const buckets of limits) {
        const waitSeconds = buckets.take(number);
        if (waitSeconds === 0) continue;
        callbacksDropped.publish({ reason: 'rate', count: 1 });
        const message = `more than ${perSecond} callbacks a second of this number, or ${perDay} a day`;
        throw new ServiceError('rate_limit_exceeded', message, undefined, waitSeconds);
      }
    },
  };
}
