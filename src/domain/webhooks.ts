/** Where an endpoint stands. */
export const ENDPOINT_STATUSES = [
  'enabled',
  /** Nothing is written for it and nothing goes to it, until somebody enables it again. */
  'disabled',
] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** Where a delivery stands: an event on its way to one endpoint. */
export const DELIVERY_STATUSES = [
  /** Waits for its first try or for another one. */
  'pending',
  /** A try was answered 2xx. Says nothing about what the endpoint made of it. */
  'succeeded',
  /** Every try failed, or the endpoint said that it is gone. Can be replayed. */
  'failed',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Characters of an endpoint's URL at most. */
export const ENDPOINT_URL_LENGTH = 2_000;
/** Characters of an endpoint's description at most. */
export const ENDPOINT_DESCRIPTION_LENGTH = 500;
/** Bytes of an endpoint's answer that are kept. */
export const ANSWER_BYTES = 4_096;
/** Hours for which the secret before the last rotation signs too. */
export const OLD_SECRET_HOURS = 24;
/** Days of nothing but failures after which an endpoint is disabled. */
export const FAILING_DAYS = 5;
/** Days for which events, deliveries and their tries are kept. */
export const DELIVERY_DAYS = 30;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Milliseconds between two tries of a delivery: the first is made at once, the tenth is the last. */
const WAITS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;
/** Share by which a wait is longer or shorter, so that what failed together does not come back together. */
const JITTER = 0.1;
/** Tries of a delivery before its endpoint may be disabled for failing: a single failure after long silence is none. */
export const TELLING_TRIES = 3;

/**
 * Milliseconds until a delivery is tried again, or undefined when it has failed for good.
 * @param failures how often it has failed, this time included; at least 1
 * @param retryAfter milliseconds before which the endpoint does not want to be asked
 * @param chance from 0 to 1, where the wait lies within its jitter
 */
export function waitAfter(failures: number, retryAfter: number | undefined, chance: number): number | undefined {
  const wait = WAITS[failures - 1];
  if (wait === undefined) return undefined;
  return Math.max(wait * (1 + JITTER * (2 * chance - 1)), retryAfter ?? 0);
}
