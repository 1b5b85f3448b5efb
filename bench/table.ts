/** A row of a table: columns by name. */
export type Row = Readonly<Record<string, string | number>>;

/** Prints rows as a table with the columns of the first row; numbers are right-aligned. */
export function printTable(title: string, rows: readonly Row[]): void {
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
  console.log(`\n${title}\n`);
  console.log([head, widths.map((width) => '-'.repeat(width)).join('  '), ...body].join('\n'));
}

function show(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 }) : value;
}
