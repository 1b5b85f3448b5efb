#!/usr/bin/env node
import { ServiceError } from '../domain/errors.ts';
import { Refusal } from './admin/api.ts';
import { UsageError } from './admin/command.ts';
import { makeProgram } from './admin/program.ts';

/** Exit codes; `docs/command-line.md` describes them. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** `sendwright …` and `npm run admin -- …`: JSON on standard output, errors and notes on standard error. */
try {
  await makeProgram(process.env['npm_lifecycle_event'] === 'admin' ? 'npm run admin --' : 'sendwright').parseAsync();
} catch (error) {
  if (error instanceof UsageError) exitWith(EXIT_USAGE, error.message);
  if (error instanceof ServiceError || error instanceof Refusal) exitWith(EXIT_FAILED, error.message);
  throw error;
}

function exitWith(code: number, message: string): never {
  console.error(message);
  process.exit(code);
}
