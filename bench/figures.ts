import type { Row } from './table.ts';

/** Returns the quantile of values by the nearest-rank method; NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Returns the median, the 99th percentile and the maximum of the values, as columns that begin with `name`. */
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

/** Combines several runs of a measurement into one row: the median of each number, and the text of the first run. */
export function medians(runs: readonly Row[]): Row {
  const row: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(runs[0] ?? {})) {
    row[name] = typeof value === 'string' ? value : median(runs.map((run) => Number(run[name])));
  }
  return row;
}

/** Runs a measurement several times, one after another. @returns the medians */
export async function repeat(runs: number, measure: () => Promise<Row>): Promise<Row> {
  const rows = [];
  for (let run = 0; run < runs; run++) rows.push(await measure());
  return medians(rows);
}

/** Combines runs of several rows each, which have the same order. */
export function mediansByRow(runs: readonly (readonly Row[])[]): Row[] {
  const rows = runs[0]?.length ?? 0;
  return Array.from({ length: rows }, (_, index) => medians(runs.map((run) => run[index] ?? {})));
}
