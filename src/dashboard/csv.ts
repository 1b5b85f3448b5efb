import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { ServiceError } from '../domain/errors.ts';
import { Reply } from './page.ts';

export interface CsvRow {
  /** Counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** Spreadsheets use semicolons in countries with a decimal comma. */
const OPTIONS = {
  bom: true,
  delimiter: [',', ';', '\t'] as string[],
  info: true,
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  trim: true,
} as const;

/** The escape of cells that a spreadsheet would calculate. */
const ESCAPED = /^'(?=[=+\-@])/;

/**
 * Reads comma-separated values (RFC 4180); semicolons and tabs separate too.
 * @param first the number of its first line
 * @throws ServiceError validation_error that names the line where quotes are wrong
 */
export function readCsv(text: string, param: string, first = 1): CsvRow[] {
  try {
    const rows = parse(text, OPTIONS) as unknown as { record: string[]; info: { lines: number } }[];
    return rows.map(({ record, info }) => ({
      line: info.lines + first - 1,
      cells: record.map((cell) => cell.replace(ESCAPED, '')),
    }));
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { lines } = error as { lines?: number };
    const where = lines === undefined ? '' : `line ${lines + first - 1}: `;
    throw new ServiceError('validation_error', `${where}has a quotation mark in a wrong place`, param);
  }
}

/**
 * Writes comma-separated values (RFC 4180). A cell that a spreadsheet would calculate gets `'` before it, which readCsv
 * takes away again.
 */
export function writeCsv(rows: readonly (readonly (string | null)[])[]): string {
  return stringify(
    rows.map((row) => [...row]),
    { record_delimiter: 'windows', escape_formulas: true },
  );
}

/** The answer with which a browser stores comma-separated values in a file. @param parts read as fast as the browser takes them */
export function csvDownload(name: string, parts: AsyncIterable<string>): Reply {
  const day = new Date().toISOString().slice(0, 10);
  return new Reply(Readable.from(parts), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}-${day}.csv"`,
    },
  });
}
