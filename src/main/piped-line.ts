import { fstatSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Milliseconds after which a pipe that says nothing is one that nobody writes to. */
const PATIENCE = 3_000;

/**
 * The first line of standard input when it is a pipe or a file; undefined for a terminal, for one that is empty, and,
 * with a word on standard error, for a pipe that was left open without one.
 */
export async function pipedLine(): Promise<string | undefined> {
  const input = fstatSync(0);
  if (!input.isFIFO() && !input.isSocket() && !input.isFile()) return undefined;
  const lines = createInterface({ input: process.stdin });
  let timer: NodeJS.Timeout | undefined;
  const line = await new Promise<string>((resolve) => {
    timer = setTimeout(() => {
      console.error(`Nothing came from standard input within ${PATIENCE / 1_000} s; going on without it.`);
      resolve('');
    }, PATIENCE);
    lines.once('line', resolve).once('close', () => resolve(''));
  });
  clearTimeout(timer);
  lines.close();
  process.stdin.destroy();
  return line === '' ? undefined : line;
}
