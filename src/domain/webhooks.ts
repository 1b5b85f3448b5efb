export const ENDPOINT_STATUSES = [
  'enabled',
  /** It receives no events and no deliveries until it is enabled again. */
  'disabled',
] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** The statuses of a delivery, which is one event for one endpoint. */
export const DELIVERY_STATUSES = [
  /** Waiting for its first or next attempt. */
  'pending',
  /** An attempt got a 2xx response. This states nothing about the processing by the endpoint. */
  'succeeded',
  /** Every attempt failed, or the endpoint returned 410. It can be replayed. */
  'failed',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const ENDPOINT_URL_LENGTH = 2_000;
export const ENDPOINT_DESCRIPTION_LENGTH = 500;
/** Bytes of an endpoint's response that are stored. */
export const ANSWER_BYTES = 4_096;
/** Hours for which the previous secret also signs after a rotation. */
export const OLD_SECRET_HOURS = 24;
/** Days without any success after which an endpoint is disabled. */
export const FAILING_DAYS = 5;
/** Days for which events, deliveries and their attempts are kept. */
export const DELIVERY_DAYS = 30;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Milliseconds between the attempts of a delivery: the first is immediate, the tenth is the last. */
const RETRY_DELAYS_MS = [
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
/** Random share of a delay, so that deliveries that failed together are not retried together. */
const JITTER = 0.1;
/** Attempts before a delivery counts towards disabling its endpoint: a single failure after a long idle time does not. */
export const MIN_FAILED_ATTEMPTS = 3;

/**
 * Returns milliseconds until the next attempt of a delivery, or undefined when it has failed permanently.
 * @param failures failed attempts including the latest; at least 1
 * @param retryAfterMs minimum delay that the endpoint requested
 * @param chance 0 to 1, the position within the jitter
 */
export function retryDelayAfter(
  failures: number,
  retryAfterMs: number | undefined,
  chance: number,
): number | undefined {
  const wait = RETRY_DELAYS_MS[failures - 1];
  if (wait === undefined) return undefined;
  return Math.max(wait * (1 + JITTER * (2 * chance - 1)), retryAfterMs ?? 0);
}
