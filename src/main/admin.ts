#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { ServiceError } from '../domain/errors.ts';
import { makePool } from '../store/pool.ts';
import { ACCOUNTS } from './admin/accounts.ts';
import { findApi, sentence } from './admin/api.ts';
import { type ApiCommand, type DatabaseCommand, OPTIONS, type Options, UsageError } from './admin/command.ts';
import { DOMAINS } from './admin/domains.ts';
import { EMAILS } from './admin/emails.ts';
import { LISTEN } from './admin/listen.ts';
import { NUMBERS } from './admin/numbers.ts';
import { RESTORE } from './admin/restore.ts';
import { RETRY } from './admin/retry.ts';
import { ERASURE } from './admin/erasure.ts';
import { SECRETS } from './admin/secrets.ts';
import { SUPPRESSIONS } from './admin/suppressions.ts';
import { USERS } from './admin/users.ts';
import { WEBHOOKS } from './admin/webhooks.ts';
import { databaseUrl, endWithoutDatabase } from './database-url.ts';
import { endWith } from './process.ts';

/** `npm run admin -- <what> <action> …`: prints JSON on standard output and what is wrong on standard error. */
const COMMANDS: Readonly<Record<string, DatabaseCommand | ApiCommand>> = {
  ...ACCOUNTS,
  ...DOMAINS,
  ...NUMBERS,
  ...WEBHOOKS,
  ...SUPPRESSIONS,
  ...USERS,
  ...EMAILS,
  ...LISTEN,
  ...RESTORE,
  ...RETRY,
  ...SECRETS,
  ...ERASURE,
};

interface Given {
  readonly command: DatabaseCommand | ApiCommand;
  readonly options: Options;
  /** What stands behind the name of a command that takes an id; else nothing. */
  readonly id: string;
}

function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, command]) => `  ${name} ${command.usage}`.trimEnd());
  return ['usage:', ...lines].join('\n');
}

function parse(): Given {
  try {
    const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
    if (positionals.length === 0) throw new UsageError('a command is missing');
    const { name, command, id } = find(positionals);
    const stray = Object.keys(values).find((option) => !takes(command, option));
    if (stray !== undefined) throw new UsageError(`${name} takes no --${stray}`);
    return { command, options: values, id };
  } catch (error) {
    return endWith(`${(error as Error).message}\n${usage()}`);
  }
}

function find(words: readonly string[]): { name: string; command: DatabaseCommand | ApiCommand; id: string } {
  const [whole, start, id = ''] = [words.join(' '), words.slice(0, -1).join(' '), words.at(-1)];
  const known = (name: string) => (Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined);
  const takesId = (command: DatabaseCommand | ApiCommand | undefined) => command?.usage.startsWith('ID') === true;
  const [command, other] = [known(whole), known(start)];
  if (other && takesId(other)) return { name: start, command: other, id };
  if (!command) throw new UsageError(`there is no command ${whole}`);
  if (takesId(command)) throw new UsageError('ID is missing');
  return { name: whole, command, id: '' };
}

/** Whether its usage names the option, and not only a longer one. */
function takes({ usage }: DatabaseCommand | ApiCommand, option: string): boolean {
  return new RegExp(`--${option}(?![\\w-])`).test(usage);
}

async function onDatabase({ run }: DatabaseCommand, options: Options): Promise<unknown> {
  const pool = makePool(await databaseUrl(), 'admin', 1, () => undefined);
  try {
    return await run(pool, options);
  } catch (error) {
    if (error instanceof ServiceError || error instanceof UsageError) throw error;
    return endWithoutDatabase(error);
  } finally {
    await pool.end();
  }
}

const { command, options, id } = parse();
try {
  const work = 'ask' in command ? command.ask(await findApi(), options, id) : onDatabase(command, options);
  const result = await work;
  if (result !== undefined) console.log(JSON.stringify(result, null, 2));
} catch (error) {
  if (error instanceof UsageError) endWith(`${error.message}\n${usage()}`);
  if (error instanceof ServiceError) endWith(error.message);
  const said = sentence(error);
  if (said !== undefined) endWith(said);
  throw error;
}
