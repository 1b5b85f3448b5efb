import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import type { Pool } from '../../store/pool.ts';
import { endWith } from '../process.ts';
import type { Api } from './api.ts';

/** What was given on the command line, by the options' names. */
export type Options = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** A command of whoever runs the service: it works on the database itself. */
export interface DatabaseCommand {
  /** The options it takes, with `[ ]` around those that may be left out. */
  readonly usage: string;
  readonly run: (pool: Pool, options: Options) => Promise<unknown>;
}

/** A command of whoever has a key: it asks the API. */
export interface ApiCommand {
  readonly usage: string;
  /** @param id what stands behind the command's name, where its usage begins with `ID`; else nothing */
  readonly ask: (api: Api, options: Options, id: string) => Promise<unknown>;
}

/** Every option of every command; which of them one takes, its usage says. */
export const OPTIONS = {
  name: { type: 'string' },
  organization: { type: 'string' },
  preset: { type: 'string' },
  domain: { type: 'string', multiple: true },
  key: { type: 'string' },
  verified: { type: 'boolean' },
  monthly: { type: 'string' },
  days: { type: 'string' },
  email: { type: 'string' },
  user: { type: 'string' },
  role: { type: 'string' },
  'reset-password': { type: 'boolean' },
  force: { type: 'boolean' },
  number: { type: 'string' },
  provider: { type: 'string' },
  'phone-number-id': { type: 'string' },
  token: { type: 'string' },
  template: { type: 'string', multiple: true },
  url: { type: 'string' },
  event: { type: 'string', multiple: true },
  to: { type: 'string', multiple: true },
  cc: { type: 'string', multiple: true },
  bcc: { type: 'string', multiple: true },
  from: { type: 'string' },
  subject: { type: 'string' },
  text: { type: 'string' },
  html: { type: 'string' },
  file: { type: 'string', multiple: true },
  at: { type: 'string' },
  status: { type: 'string' },
  tag: { type: 'string', multiple: true },
  limit: { type: 'string' },
  cursor: { type: 'string' },
  'dry-run': { type: 'boolean' },
  error: { type: 'string' },
  since: { type: 'string' },
  reason: { type: 'string' },
  'forward-to': { type: 'string' },
  'public-url': { type: 'string' },
  port: { type: 'string' },
} as const;

/** A command that cannot be understood; it is told with the usage of all. */
export class UsageError extends Error {}

/** @throws UsageError when it is not there, or empty */
export function needed(options: Options, name: string): string {
  const value = options[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new UsageError(`--${name} is missing`);
}

/** Undefined when it is not there. An empty one is a mistake, as for those that are needed. */
export function optional(options: Options, name: string): string | undefined {
  return options[name] === undefined ? undefined : needed(options, name);
}

/** All values of an option that may be repeated. */
export function each(options: Options, name: string): string[] {
  return (options[name] ?? []) as string[];
}

/** The types in `--event`. Ends the process when there is no such event. */
export function eventTypes(options: Options): EventType[] {
  return each(options, 'event').map((name) => {
    const type = EVENT_TYPES.find((known) => known === name);
    return type ?? endWith(`--event ${name}: there is no such event; known are ${EVENT_TYPES.join(', ')}`);
  });
}
