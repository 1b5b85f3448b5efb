/** How many workflows may be started now: a token bucket. */
export interface Budget {
  /** Whole tokens that are there. */
  readonly available: () => number;
  /** Takes tokens out, at most those that are there. */
  readonly spend: (tokens: number) => void;
  /** Milliseconds until there is a token. */
  readonly untilNext: () => number;
}

/** Seconds of income that may be saved up, for a burst. */
const SAVED = 2.5;

/**
 * @param perSecond tokens that come in
 * @param now a monotonic clock in milliseconds
 */
export function makeBudget(perSecond: number, now: () => number = () => performance.now()): Budget {
  const most = Math.max(1, perSecond * SAVED);
  let tokens = most;
  let at = now();
  const fill = (): void => {
    const time = now();
    tokens = Math.min(most, tokens + ((time - at) / 1_000) * perSecond);
    at = time;
  };
  return {
    available: () => {
      fill();
      return Math.floor(tokens);
    },
    spend: (spent) => {
      tokens = Math.max(0, tokens - spent);
    },
    untilNext: () => {
      fill();
      return Math.max(0, Math.ceil(((1 - tokens) / perSecond) * 1_000));
    },
  };
}
