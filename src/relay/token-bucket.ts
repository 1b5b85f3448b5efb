/** Limits how many workflows are started. */
export interface TokenBucket {
  /** The number of whole tokens. */
  readonly available: () => number;
  /** Takes tokens, at most those that are available. */
  readonly take: (tokens: number) => void;
  readonly msUntilNext: () => number;
}

/** The bucket holds the tokens of so many seconds, for a burst. */
const BURST_SECONDS = 2.5;

/** The most tokens that a bucket holds. */
export function capacityOf(tokensPerSecond: number): number {
  return Math.max(1, tokensPerSecond * BURST_SECONDS);
}

/** @param now a monotonic clock in milliseconds */
export function makeTokenBucket(tokensPerSecond: number, now: () => number = () => performance.now()): TokenBucket {
  const capacity = capacityOf(tokensPerSecond);
  let tokens = capacity;
  let refilledAt = now();
  const refill = (): void => {
    const time = now();
    tokens = Math.min(capacity, tokens + ((time - refilledAt) / 1_000) * tokensPerSecond);
    refilledAt = time;
  };
  return {
    available: () => {
      refill();
      return Math.floor(tokens);
    },
    take: (taken) => {
      tokens = Math.max(0, tokens - taken);
    },
    msUntilNext: () => {
      refill();
      return Math.max(0, Math.ceil(((1 - tokens) / tokensPerSecond) * 1_000));
    },
  };
}
