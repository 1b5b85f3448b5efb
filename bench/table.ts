import { cpus } from 'node:os';

/** Prints rows as a table for people: columns by name, numbers to the right. */
export function printTable(title: string, rows: readonly Readonly<Record<string, string | number>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  const cells = [names, ...rows.map((row) => names.map((name) => show(row[name] ?? '')))];
  const widths = names.map((_, column) => Math.max(...cells.map((line) => (line[column] ?? '').length)));
  const [head, ...body] = cells.map((line, index) =>
    line
      .map((text, column) => {
        const width = widths[column] ?? 0;
        const number = index > 0 && typeof rows[index - 1]?.[names[column] ?? ''] === 'number';
        return number ? text.padStart(width) : text.padEnd(width);
      })
      .join('  ')
      .trimEnd(),
  );
  const [cpu] = cpus();
  console.log(`\n${title}\nNode ${process.version}, ${cpus().length} × ${cpu?.model ?? 'unknown processor'}\n`);
  console.log([head, widths.map((width) => '-'.repeat(width)).join('  '), ...body].join('\n'));
}

function show(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 }) : value;
}

/** The value below which a share of the values lies, by the nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
