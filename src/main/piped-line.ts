import { fstatSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** A pipe without input is ignored after this time. */
const INPUT_TIMEOUT_MS = 3_000;

/**
 * Reads the first line of standard input if that is a pipe or a file. Returns undefined for a terminal, for empty input, and
 * (with a warning on standard error) for an open pipe without input.
 */
export async function readPipedLine(): Promise<string | undefined> {
  const input = fstatSync(0);
  if (!input.isFIFO() && !input.isSocket() && !input.isFile()) return undefined;
  const lines = createInterface({ input: process.stdin });
  let timer: NodeJS.Timeout | undefined;
  const line = await new Promise<string>((resolve) => {
    timer = setTimeout(() => {
      console.error(`No input arrived on standard input within ${INPUT_TIMEOUT_MS / 1_000} s; continuing without it.`);
      resolve('');
    }, INPUT_TIMEOUT_MS);
    lines.once('line', resolve).once('close', () => resolve(''));
  });
  clearTimeout(timer);
  lines.close();
  process.stdin.destroy();
  return line === '' ? undefined : line;
}
