import { parseMailbox } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
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

/** The maximum number of refused lines and addresses; a text with more is not a list of addresses. */
const MAX_REFUSED = 20_000;
/** The maximum length of a line in UTF-16 code units; 10,000 addresses in one line are shorter. */
const MAX_LINE_LENGTH = 1_000_000;
/** The form field with the list, which errors name. */
const FIELD = 'addresses';
const HEADING = /^(?:e-?mail|e-?mail[ _-]address|address|recipient)$/i;

/**
 * Parses a list of addresses: one or several per line, or comma-separated values. If the first line has a column named
 * `email`, only that column is read. Yields to other requests in between.
 * @throws ServiceError validation_error for invalid quotes in values with a heading, and for too many invalid addresses
 */
export async function readAddresses(text: string): Promise<AddressList> {
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  const begin = lines.findIndex((line) => line.trim() !== '');
  const column = begin < 0 ? -1 : await headingOf(lines[begin] ?? '');
  const addresses = new Set<string>();
  const refused: RefusedLine[] = [];
  const yieldIfDue = startTimeSlices();
  const refuse = (line: number, text: string, problem: string): void => {
    refused.push({ line, text, problem });
    if (refused.length <= MAX_REFUSED) return;
    throw new ServiceError('validation_error', `has more than ${MAX_REFUSED} invalid addresses`, FIELD);
  };
  const take = async (line: number, candidates: readonly string[], whole: string): Promise<void> => {
    if (candidates.length === 0) refuse(line, whole, 'contains no address');
    for (const candidate of candidates) {
      const mailbox = parseMailbox(candidate);
      if (typeof mailbox === 'string') refuse(line, candidate, mailbox);
      else addresses.add(mailbox.address.toLowerCase());
      await yieldIfDue();
    }
  };
  if (column >= 0) {
    for await (const { line, cells } of readLongCsv(lines.slice(begin + 1).join('\n'), FIELD, begin + 2)) {
      await take(line, [cells[column] ?? ''].filter(Boolean), cells.join(','));
    }
  } else {
    for (const [index, line] of lines.entries()) {
      if (line.length > MAX_LINE_LENGTH)
        refuse(index + 1, line.slice(0, 100), 'is too long; write one address per line');
      else if (line.trim() !== '') await take(index + 1, await addressesIn(line.trim()), line.trim());
      await yieldIfDue();
    }
  }
  return { addresses: [...addresses], refused };
}

/** Returns the index of the column with addresses; -1 if the line is not a heading. */
async function headingOf(line: string): Promise<number> {
  if (line.includes('@') || line.length > MAX_LINE_LENGTH) return -1;
  return (await readLine(line)).findIndex((cell) => HEADING.test(cell));
}

/** Returns the possible addresses of a line. A display name may contain commas and quotation marks. */
async function addressesIn(line: string): Promise<readonly string[]> {
  if (typeof parseMailbox(line) !== 'string') return [line];
  return (await readLine(line)).filter((cell) => cell.includes('@'));
}
