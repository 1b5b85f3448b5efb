#!/usr/bin/env node
import { makeProgram } from './admin/program.ts';
import { runProgram } from './admin/run.ts';

/**
 * The command line `sendwright …` or `npm run admin -- …`. Prints JSON on standard output, errors and notes on standard
 * error.
 */
const name = process.env['npm_lifecycle_event'] === 'admin' ? 'npm run admin --' : 'sendwright';
const code = await runProgram(makeProgram(name));
if (code !== 0) process.exit(code);
