import { Command, type HelpContext, InvalidArgumentError, Option } from 'commander';
import { ServiceError } from '../../domain/errors.ts';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import { requireOrganization } from '../../accounts/organizations.ts';
import { readAll } from '../../store/postgres/page.ts';
import { type Db, makePool, type Pool, type Timeouts } from '../../store/postgres/pool.ts';
import { databaseUrl, exitWithoutDatabase } from '../wiring/command-database.ts';
import { type Api, findApi, Refusal, refusalOf } from './api.ts';

/** The command line is not valid. The process exits with EXIT_USAGE. */
export class UsageError extends Error {}

/** Commands throw UsageError instead of printing the error and the usage themselves. */
export class AdminCommand extends Command {
  override createCommand(name?: string): AdminCommand {
    return new AdminCommand(name);
  }

  override error(message: string): never {
    const problem = message.replace(/^error: /, '').replaceAll('\n', ' ');
    throw new UsageError(`${problem}\nHelp: ${this.path()} --help`);
  }

  override help(context?: HelpContext | ((text: string) => string)): never {
    if (typeof context === 'object' && context.error) {
      const names = this.commands.map((command) => command.name());
      this.error(`a command is missing after ${this.path()}; there are ${names.join(', ')}`);
    }
    return super.help();
  }

  private path(): string {
    return this.parent instanceof AdminCommand ? `${this.parent.path()} ${this.name()}` : this.name();
  }
}

/** Commands cannot notify the relay, which polls the outbox every second. */
export const wakeRelay = (): void => undefined;

/** An option with a value, which must not be empty. */
export function option(flags: string, description: string): Option {
  return new Option(flags, description).argParser(nonEmpty);
}

export function required(flags: string, description: string): Option {
  return option(flags, description).makeOptionMandatory();
}

/** An option that can be repeated. Its value is a list, which is empty without the option. */
export function repeatable<Value extends string = string>(
  flags: string,
  description: string,
  check: (value: string) => Value = nonEmpty as (value: string) => Value,
): Option {
  const collect = (value: string, previous: readonly Value[] = []) => [...previous, check(value)];
  return new Option(flags, `${description}; can be repeated`).argParser(collect).default([], 'none');
}

export interface OfOrganization {
  readonly organization: string;
}

/** Returns a function that adds commands with the option `--organization` to a group. */
export function commandsOf(group: Command): (name: string, description: string) => Command {
  const organization = required('--organization <id>', 'id of the organization');
  return (name, description) => group.command(name).description(description).addOption(organization);
}

/** Adds a command that lists the items of one organization, or of all. */
export function addListOfAll(
  group: Command,
  description: string,
  list: (pool: Pool, orgId: string | null) => Promise<unknown>,
): void {
  group
    .command('list')
    .description(description)
    .addOption(option('--organization <id>', 'id of the organization, all by default'))
    .action(onDatabase((pool, { organization }: Partial<OfOrganization>) => list(pool, organization ?? null)));
}

/** Returns the action of a command that prints all rows of a paged list of an organization. */
export function onList<Row>(
  list: (db: Db, orgId: string, after: Row | null, limit: number) => Promise<readonly Row[]>,
) {
  return onDatabase(async (pool, { organization }: OfOrganization) => {
    await requireOrganization(pool, organization);
    return readAll<Row>((after, limit) => list(pool, organization, after, limit));
  });
}

/** @throws InvalidArgumentError, which commander reports with the name of the option */
export function matchingText(pattern: RegExp, allowed: string): (value: string) => string {
  return (value) => {
    if (pattern.test(value)) return value;
    throw new InvalidArgumentError(`Allowed: ${allowed}.`);
  };
}

export function eventOption(): Option {
  const check = (value: string): EventType => {
    const type = EVENT_TYPES.find((known) => known === value);
    if (type === undefined) throw new InvalidArgumentError(`Allowed: ${EVENT_TYPES.join(', ')}.`);
    return type;
  };
  return repeatable('--event <type>', 'type of event', check).default([], 'all');
}

function nonEmpty(value: string): string {
  if (value === '') throw new InvalidArgumentError('It must not be empty.');
  return value;
}

/**
 * Returns the action of a command for operators, which accesses the database. It prints the result as JSON.
 * @param run throws InvalidArgumentError for options that contradict each other
 */
export function onDatabase<O>(run: (pool: Pool, options: O) => Promise<unknown>, timeouts?: Timeouts) {
  return async (options: O, command: Command): Promise<void> => {
    const pool = makePool(await databaseUrl(), 'admin', 1, () => undefined, timeouts);
    try {
      print(await run(pool, options));
    } catch (error) {
      if (error instanceof InvalidArgumentError) command.error(error.message);
      if (error instanceof ServiceError || error instanceof Refusal) throw error;
      exitWithoutDatabase(error);
    } finally {
      await pool.end();
    }
  };
}

/**
 * Returns the action of a command for holders of an API key, which calls the API. It prints the result as JSON.
 * @param ask receives the arguments and options; throws InvalidArgumentError for options that contradict each other
 */
export function onApi(ask: (api: Api, ...args: never[]) => Promise<unknown>) {
  return async (...args: unknown[]): Promise<void> => {
    const api = await findApi();
    try {
      print(await ask(api, ...(args as never[])));
    } catch (error) {
      if (error instanceof InvalidArgumentError) (args.at(-1) as Command).error(error.message);
      throw refusalOf(error, api) ?? error;
    }
  };
}

function print(result: unknown): void {
  if (result !== undefined) console.log(JSON.stringify(result, null, 2));
}
