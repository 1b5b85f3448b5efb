import { ServiceError } from '../../domain/errors.ts';
import { Refusal } from './api.ts';
import { type AdminCommand, UsageError } from './command.ts';

/** Exit codes, documented in `docs/command-line.md`. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs the program. Prints errors with a known reason on standard error. @returns the exit code */
export async function runProgram(program: AdminCommand, args?: readonly string[]): Promise<number> {
  try {
    await (args === undefined ? program.parseAsync() : program.parseAsync(args, { from: 'user' }));
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (!isUsage && !(error instanceof ServiceError || error instanceof Refusal)) throw error;
    console.error(error.message);
    return isUsage ? EXIT_USAGE : EXIT_FAILED;
  }
}
