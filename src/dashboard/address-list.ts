import { parseMailbox } from '../domain/email/address.ts';
import { startTimeSlices } from '../intake/time-slices.ts';
import { readLine, readLongCsv } from './csv.ts';

/** A line without an address, or with an invalid one. */
export interface RefusedLine {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly problem: string;
}

export interface AddressList {
  /** Without names, in lower case, without duplicates. */
  readonly addresses: readonly string[];
  readonly refused: readonly RefusedLine[];
}

const HEADING = /^(?:e-?mail|e-?mail[ _-]address|address|recipient)$/i;

/**
 * Parses a list of addresses: one or several per line, or comma-separated values. If the first line has a column named
 * `email`, only that column is read. Yields to other requests in between.
 * @throws ServiceError validation_error for invalid quotes in values with a heading
 */
export async function readAddresses(text: string, param: string): Promise<AddressList> {
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
    for await (const { line, cells } of readLongCsv(lines.slice(begin + 1).join('\n'), param, begin + 2)) {
      take(line, [cells[column] ?? ''].filter(Boolean), cells.join(','));
    }
  } else {
    const turn = startTimeSlices();
    for (const [index, line] of lines.entries()) {
      if (line.trim() !== '') take(index + 1, addressesIn(line.trim()), line.trim());
      await turn();
    }
  }
  return { addresses: [...addresses], refused };
}

/** Returns the index of the column with addresses; -1 if the line is not a heading. */
function headingOf(line: string): number {
  return line.includes('@') ? -1 : readLine(line).findIndex((cell) => HEADING.test(cell));
}

/** Returns the possible addresses of a line. A display name may contain commas and quotation marks. */
function addressesIn(line: string): readonly string[] {
  if (typeof parseMailbox(line) !== 'string') return [line];
  return readLine(line).filter((cell) => cell.includes('@'));
}
