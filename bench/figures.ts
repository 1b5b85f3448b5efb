import type { Row } from './table.ts';

/** The value below which a share of the values lies, by the nearest rank; NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** The median, the 99th percentile and the maximum of the values, as columns that begin with a name. */
export function quantiles(name: string, values: readonly number[]): Record<string, number> {
  return {
    [`${name} p50`]: quantile(values, 0.5),
    [`${name} p99`]: quantile(values, 0.99),
    [`${name} max`]: quantile(values, 1),
  };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** One row for several runs of the same measurement: of each number the median; words are those of the first run. */
export function medians(runs: readonly Row[]): Row {
  const row: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(runs[0] ?? {})) {
    row[name] = typeof value === 'string' ? value : median(runs.map((run) => Number(run[name])));
  }
  return row;
}

/** Likewise for runs of several rows each, which come in one order. */
export function mediansByRow(runs: readonly (readonly Row[])[]): Row[] {
  const rows = runs[0]?.length ?? 0;
  return Array.from({ length: rows }, (_, index) => medians(runs.map((run) => run[index] ?? {})));
}
