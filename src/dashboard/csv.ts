import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { ServiceError } from '../domain/errors.ts';
import type { Cursor } from '../store/postgres/page.ts';
import { act, type Change } from './act.ts';
import { type Answer, type Context, Reply } from './page.ts';

export interface CsvRow {
  /** Counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** Semicolons are delimiters too: spreadsheets use them in countries with a decimal comma. */
const OPTIONS = {
  bom: true,
  delimiter: [',', ';', '\t'] as string[],
  info: true,
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  trim: true,
} as const;

/** Matches the escape of cells that a spreadsheet would evaluate as a formula. */
const ESCAPED = /^'(?=[=+\-@])/;

/**
 * Parses comma-separated values (RFC 4180); semicolons and tabs are delimiters too.
 * @param first the number of the first line
 * @throws ServiceError validation_error with the line of invalid quotes
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
 * Formats comma-separated values (RFC 4180). A cell that a spreadsheet would evaluate as a formula is prefixed with `'`,
 * which readCsv removes.
 */
function writeCsv(rows: readonly (readonly (string | null)[])[]): string {
  return stringify(
    rows.map((row) => [...row]),
    { record_delimiter: 'windows', escape_formulas: true },
  );
}

interface Chunk<Row> {
  readonly rows: readonly Row[];
  /** The position of the next chunk; null after the last one. */
  readonly next: Cursor | null;
}

/**
 * Formats a list as CSV. The list is read in chunks, since it may be long.
 * @param read returns the rows after a position; null is the start of the list
 */
export async function* csvParts<Row>(
  header: readonly string[],
  read: (after: Cursor | null) => Promise<Chunk<Row>>,
  cells: (row: Row) => readonly (string | null)[],
): AsyncGenerator<string> {
  yield writeCsv([header]);
  let after: Cursor | null = null;
  do {
    const { rows, next }: Chunk<Row> = await read(after);
    if (rows.length > 0) yield writeCsv(rows.map(cells));
    after = next;
  } while (after);
}

/**
 * Writes an export to the audit log and returns the answer that a browser saves as a CSV file.
 * @param name of the file, without the day
 * @param parts are read only as fast as the browser receives them
 */
export function exportCsv(
  context: Context,
  change: Pick<Change<void>, 'action' | 'detail'>,
  name: string,
  parts: AsyncIterable<string>,
): Promise<Answer> {
  return act(context, { ...change, run: () => Promise.resolve(), next: () => csvDownload(name, parts) });
}

function csvDownload(name: string, parts: AsyncIterable<string>): Reply {
  const day = new Date().toISOString().slice(0, 10);
  return new Reply(Readable.from(parts), {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}-${day}.csv"`,
    },
  });
}
