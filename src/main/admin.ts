#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { ServiceError } from '../domain/errors.ts';
import { addDomain, createKey, createOrganization, endKey } from '../intake/accounts.ts';
import { listOrganizations, PRESETS } from '../store/accounts.ts';
import { makePool, type Pool } from '../store/pool.ts';
import { databaseUrl, endWithoutDatabase } from './database-url.ts';
import { endWith } from './process.ts';

/** `npm run admin -- <what> <action> …`: prints JSON on standard output and what is wrong on standard error. */
type Options = Readonly<Record<string, string | boolean | string[] | undefined>>;

interface Command {
  /** The options it takes, with `[ ]` around those that may be left out. */
  readonly usage: string;
  readonly run: (pool: Pool, options: Options) => Promise<unknown>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  'organization create': {
    usage: '--name N',
    run: (pool, options) => createOrganization(pool, needed(options, 'name')),
  },
  'organization list': { usage: '', run: (pool) => listOrganizations(pool) },
  'key create': {
    usage: `--organization O [--preset ${PRESETS.join('|')}] [--domain D]…`,
    run: (pool, options) => {
      const given = options['preset'] ?? 'full_access';
      const preset = PRESETS.find((name) => name === given) ?? endWith(`--preset must be one of ${PRESETS.join(', ')}`);
      return createKey(pool, needed(options, 'organization'), preset, (options['domain'] ?? []) as string[]);
    },
  },
  'key revoke': { usage: '--key K', run: (pool, options) => endKey(pool, needed(options, 'key')) },
  'domain add': {
    usage: '--organization O --name D [--verified]',
    run: (pool, options) =>
      addDomain(pool, needed(options, 'organization'), needed(options, 'name'), options['verified'] === true),
  },
};

const OPTIONS = {
  name: { type: 'string' },
  organization: { type: 'string' },
  preset: { type: 'string' },
  domain: { type: 'string', multiple: true },
  key: { type: 'string' },
  verified: { type: 'boolean' },
} as const;

function needed(options: Options, name: string): string {
  const value = options[name];
  return typeof value === 'string' && value !== '' ? value : endWith(`--${name} is missing\n${usage()}`);
}

function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, command]) => `  ${name} ${command.usage}`.trimEnd());
  return ['usage:', ...lines].join('\n');
}

function parse(): { command: Command; options: Options } {
  try {
    const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
    const name = positionals.join(' ');
    if (name === '') endWith(`a command is missing\n${usage()}`);
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command) endWith(`there is no command ${name}\n${usage()}`);
    const stray = Object.keys(values).find((option) => !command.usage.includes(`--${option}`));
    if (stray !== undefined) endWith(`${name} takes no --${stray}\n${usage()}`);
    return { command, options: values };
  } catch (error) {
    return endWith(`${(error as Error).message}\n${usage()}`);
  }
}

const { command, options } = parse();
const pool = makePool(await databaseUrl(), 'admin', 1, () => undefined);
try {
  console.log(JSON.stringify(await command.run(pool, options), null, 2));
} catch (error) {
  if (error instanceof ServiceError) endWith(error.message);
  endWithoutDatabase(error);
} finally {
  await pool.end();
}
