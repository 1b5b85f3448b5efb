/** Returns the smallest whole n with 2^(n/2) ms or more in a duration: histograms count by steps of 41 %, at any scale. */
export function timeStep(milliseconds: number): number {
  return Math.ceil(2 * Math.log2(Math.max(milliseconds, 1)));
}

/**
 * Estimates a percentile from a histogram.
 * @param steps counts of durations above 2^((step - 1)/2) ms up to 2^(step/2) ms
 * @param part 0.5 for the median
 * @returns milliseconds, interpolated linearly within a step; null without data
 */
export function percentile(steps: ReadonlyMap<number, number>, part: number): number | null {
  const sorted = [...steps].filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let before = 0;
  for (const [step, count] of sorted) {
    const rest = part * total - before;
    if (rest <= count) {
      const [low, high] = [step === 0 ? 0 : 2 ** ((step - 1) / 2), 2 ** (step / 2)];
      return low + (high - low) * (rest / count);
    }
    before += count;
  }
  return null;
}

/** Formats a duration in one or two units. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  if (seconds < 3_600 && minutes < 60) {
    const whole = Math.floor(Math.round(seconds) / 60);
    return `${whole} min ${Math.round(seconds) - whole * 60} s`;
  }
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
