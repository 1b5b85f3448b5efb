export const ENDPOINT_STATUSES = [
  'enabled',
  /** It receives no events and no deliveries until it is enabled again. */
  'disabled',
] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** The statuses of a delivery, which is one event for one endpoint. */
export const DELIVERY_STATUSES = [
  /** Pending until its first or next attempt. */
  'pending',
  /** An attempt got a 2xx response. This states nothing about the processing by the endpoint. */
  'succeeded',
  /** Every attempt failed, or the endpoint returned 410. It can be replayed. */
  'failed',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const ENDPOINT_URL_LENGTH = 2_000;
export const ENDPOINT_DESCRIPTION_LENGTH = 500;
/** Maximum stored size of an endpoint's response, in bytes. */
export const ANSWER_BYTES = 4_096;
/** The latest attempts of a delivery that are shown: each replay adds up to ten. */
export const MAX_SHOWN_ATTEMPTS = 100;
/** Hours after a rotation for which deliveries are also signed with the previous secret. */
export const OLD_SECRET_HOURS = 24;
/** Days of failures without a success after which an endpoint is disabled. */
export const FAILING_DAYS = 5;
/** Retention of events, deliveries and their attempts, in days. */
export const DELIVERY_DAYS = 30;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays between the attempts of a delivery, in milliseconds. The first attempt is immediate, the tenth is the last. */
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
/** The random share of a delay, so that deliveries that failed together are not retried together. */
const JITTER = 0.1;
/**
 * Failed attempts from which a delivery counts towards disabling its endpoint, so that one failure after a long idle time
 * does not.
 */
export const MIN_FAILED_ATTEMPTS = 3;

/**
 * Returns the milliseconds until the next attempt of a delivery, or undefined if it has failed permanently.
 * @param failures failed attempts including the latest; at least 1
 * @param retryAfterMs the minimum delay that the endpoint requested
 * @param chance the position within the jitter, from 0 to 1
 */
export function retryDelayAfter(
  failures: number,
  retryAfterMs: number | undefined,
  chance: number,
): number | undefined {
  const delayMs = RETRY_DELAYS_MS[failures - 1];
  if (delayMs === undefined) return undefined;
  return Math.max(delayMs * (1 + JITTER * (2 * chance - 1)), retryAfterMs ?? 0);
}
