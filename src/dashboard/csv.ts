import { Readable } from 'node:stream';
import { CsvError, parse as parseStream } from 'csv-parse';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { ServiceError } from '../domain/errors.ts';
import { startTimeSlices } from '../intake/time-slices.ts';
import type { Cursor, Page } from '../store/postgres/page.ts';
import { act, type Change } from './act.ts';
import { type Context, type PageResponse, Reply } from './page.ts';

interface CsvRow {
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

/** Bytes that the parser reads in one step, which takes a few milliseconds. */
const PIECE_BYTES = 8_192;

/** A row as the parser returns it, with the number of lines up to its end. */
interface ParsedRow {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

/**
 * Parses comma-separated values (RFC 4180); semicolons and tabs are delimiters too.
 * @throws ServiceError validation_error with the line of invalid quotes
 */
export function readCsv(text: string, param: string): CsvRow[] {
  try {
    return (parse(text, OPTIONS) as unknown as ParsedRow[]).map((row) => toRow(row, 1));
  } catch (error) {
    throw toServiceError(error, param, 1);
  }
}

/**
 * Parses values as readCsv does, and yields to other requests in between.
 * @param first the number of the first line
 * @throws ServiceError validation_error with the line of invalid quotes
 */
export async function* readLongCsv(text: string, param: string, first: number): AsyncGenerator<CsvRow> {
  const yieldIfDue = startTimeSlices();
  try {
    for await (const row of Readable.from(piecesOf(text, yieldIfDue)).compose(parseStream(OPTIONS))) {
      yield toRow(row as ParsedRow, first);
      await yieldIfDue();
    }
  } catch (error) {
    throw toServiceError(error, param, first);
  }
}

/** Parses one line. A long one yields to other requests in between. @returns its cells, or the line itself if its quotes are invalid */
export async function readLine(line: string): Promise<readonly string[]> {
  // Without quotes, splitting gives the same cells and is much faster than the parser.
  if (!line.includes('"')) return toCells(line.split(/[,;\t]/).map((cell) => cell.trim()));
  try {
    if (line.length <= PIECE_BYTES) return readCsv(line, '')[0]?.cells ?? [];
    for await (const { cells } of readLongCsv(line, '', 1)) return cells;
    return [];
  } catch {
    return [line];
  }
}

/** Cuts a text into bytes, because a piece of text might end within a surrogate pair. */
async function* piecesOf(text: string, yieldIfDue: () => Promise<void> | undefined): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
    yield bytes.subarray(start, start + PIECE_BYTES);
    await yieldIfDue();
  }
}

function toRow({ record, info }: ParsedRow, first: number): CsvRow {
  return { line: info.lines + first - 1, cells: toCells(record) };
}

function toCells(record: readonly string[]): string[] {
  return record.map((cell) => cell.replace(ESCAPED, ''));
}

function toServiceError(error: unknown, param: string, first: number): unknown {
  if (!(error instanceof CsvError)) return error;
  const { lines } = error as { lines?: number };
  const where = lines === undefined ? '' : `line ${lines + first - 1}: `;
  return new ServiceError('validation_error', `${where}has a quotation mark in a wrong place`, param);
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

/**
 * Formats a list as CSV. The list is read page by page, since it may be long.
 * @param read returns the page after a cursor; null is the start of the list
 */
export async function* csvParts<Row>(
  header: readonly string[],
  read: (after: Cursor | null) => Promise<Page<Row>>,
  cells: (row: Row) => readonly (string | null)[],
): AsyncGenerator<string> {
  // Without a byte-order mark, Excel reads the file in the code page of Windows instead of UTF-8.
  yield `\uFEFF${writeCsv([header])}`;
  let after: Cursor | null = null;
  do {
    const { rows, next }: Page<Row> = await read(after);
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
): Promise<PageResponse> {
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
