import { parseMailbox } from '../domain/email/address.ts';
import { type CsvRow, readCsv } from './csv.ts';

/** A line without an address, or with an invalid one. */
export interface RefusedLine {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly problem: string;
}

export interface AddressList {
  /** Bare, in lower case, each once. */
  readonly addresses: readonly string[];
  readonly refused: readonly RefusedLine[];
}

const HEADING = /^(?:e-?mail|e-?mail[ _-]address|address|recipient)$/i;

/**
 * Reads a list of addresses: one in each line, several in a line, or comma-separated values. When the first line has a
 * column that is called `email`, only that column counts.
 * @throws ServiceError validation_error for values with a heading whose quotes are wrong
 */
export function readAddresses(text: string, param: string): AddressList {
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  const begin = lines.findIndex((line) => line.trim() !== '');
  const column = begin < 0 ? -1 : headingOf(lines[begin] ?? '');
  const addresses = new Set<string>();
  const refused: RefusedLine[] = [];
  const take = (line: number, candidates: readonly string[], whole: string): void => {
    if (candidates.length === 0) refused.push({ line, text: whole, problem: 'holds no address' });
    for (const candidate of candidates) {
      const mailbox = parseMailbox(candidate);
      if (typeof mailbox === 'string') refused.push({ line, text: candidate, problem: mailbox });
      else addresses.add(mailbox.address.toLowerCase());
    }
  };
  if (column >= 0) {
    for (const { line, cells } of readCsv(lines.slice(begin + 1).join('\n'), param, begin + 2)) {
      take(line, [cells[column] ?? ''].filter(Boolean), cells.join(','));
    }
  } else {
    for (const [index, line] of lines.entries()) {
      if (line.trim() !== '') take(index + 1, addressesIn(line.trim()), line.trim());
    }
  }
  return { addresses: [...addresses], refused };
}

/** The index of the column with addresses; -1 if the line is no heading. */
function headingOf(line: string): number {
  const cells = line.includes('@') ? [] : (tryCsv(line)?.cells ?? []);
  return cells.findIndex((cell) => HEADING.test(cell));
}

/** The possible addresses of a line; a display name may contain commas and quotation marks. */
function addressesIn(line: string): readonly string[] {
  if (typeof parseMailbox(line) !== 'string') return [line];
  const cells = tryCsv(line)?.cells ?? [line];
  return cells.filter((cell) => cell.includes('@'));
}

function tryCsv(line: string): CsvRow | undefined {
  try {
    return readCsv(line, '')[0];
  } catch {
    return undefined;
  }
}
