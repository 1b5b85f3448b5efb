#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { CHAT_PROVIDERS } from '../domain/chat.ts';
import { ServiceError } from '../domain/errors.ts';
import { EVENT_TYPES } from '../domain/event-types.ts';
import { createOrganization, requireOrganization } from '../intake/accounts.ts';
import { addNumber, chatSeal } from '../intake/chat-numbers.ts';
import { createKey, endKey } from '../intake/keys.ts';
import { giveQuota } from '../intake/quota.ts';
import { allSuppressions, listedAddress, suppress, unsuppress } from '../intake/suppressions.ts';
import { createUser } from '../intake/users.ts';
import { addEndpoint, makeWebhookIntake } from '../intake/webhooks.ts';
import { listOrganizations } from '../store/accounts.ts';
import { PRESETS } from '../store/keys.ts';
import { makePool, type Pool } from '../store/pool.ts';
import { addByHand, listByHand, removeByHand, showByHand, verifyByHand } from './admin-domains.ts';
import { databaseUrl, endWithoutDatabase } from './database-url.ts';
import { endWith } from './process.ts';
import { pipedLine } from './piped-line.ts';
import { webhookSettings } from './webhook-settings.ts';

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
  'quota set': {
    usage: '--organization O --monthly N|none',
    run: async (pool, options) => {
      const [organization, monthly] = [needed(options, 'organization'), needed(options, 'monthly')];
      if (!/^(?:\d{1,15}|none)$/.test(monthly)) endWith('--monthly must be a number of emails, or none for no quota');
      const quota = monthly === 'none' ? null : Number(monthly);
      const { monthly: given, used, resets_at } = await giveQuota(pool, organization, quota);
      return { organization, monthly: given, used, resets_at };
    },
  },
  'domain add': {
    usage: '--organization O --name D [--verified]',
    run: async (pool, options) => {
      const [organization, name] = [needed(options, 'organization'), needed(options, 'name')];
      return addByHand(pool, organization, name, options['verified'] === true);
    },
  },
  'domain list': {
    usage: '--organization O',
    run: async (pool, options) => listByHand(pool, needed(options, 'organization')),
  },
  'domain show': { usage: '--organization O --name D', run: oneDomain(showByHand) },
  'domain verify': { usage: '--organization O --name D', run: oneDomain(verifyByHand) },
  'domain remove': { usage: '--organization O --name D', run: oneDomain(removeByHand) },
  'number add': {
    usage: `--organization O --number +… --provider ${CHAT_PROVIDERS.join('|')} [--phone-number-id …] [--token …]`,
    run: addChatNumber,
  },
  'webhook add': { usage: '--organization O --url U [--event T]…', run: addWebhook },
  'suppression add': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const { organization, email } = await listAndAddress(pool, options);
      const { suppressions } = await suppress(pool, organization, [email]);
      return suppressions[0];
    },
  },
  'suppression remove': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const { organization, email } = await listAndAddress(pool, options);
      return { email, removed: await unsuppress(pool, organization, email) };
    },
  },
  'suppression list': {
    usage: '--organization O',
    run: async (pool, options) => {
      const organization = needed(options, 'organization');
      await requireOrganization(pool, organization);
      return allSuppressions(pool, organization);
    },
  },
  'user create': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const [organization, email] = [needed(options, 'organization'), needed(options, 'email')];
      return createUser(pool, organization, email, await pipedLine());
    },
  },
};

const OPTIONS = {
  name: { type: 'string' },
  organization: { type: 'string' },
  preset: { type: 'string' },
  domain: { type: 'string', multiple: true },
  key: { type: 'string' },
  verified: { type: 'boolean' },
  monthly: { type: 'string' },
  email: { type: 'string' },
  number: { type: 'string' },
  provider: { type: 'string' },
  'phone-number-id': { type: 'string' },
  token: { type: 'string' },
  url: { type: 'string' },
  event: { type: 'string', multiple: true },
} as const;

function needed(options: Options, name: string): string {
  const value = options[name];
  return typeof value === 'string' && value !== '' ? value : endWith(`--${name} is missing\n${usage()}`);
}

/** A command about one domain, by its name. */
function oneDomain(work: (pool: Pool, organization: string, name: string) => Promise<unknown>): Command['run'] {
  return async (pool, options) => work(pool, needed(options, 'organization'), needed(options, 'name'));
}

async function addWebhook(pool: Pool, options: Options): Promise<unknown> {
  const [organization, url] = [needed(options, 'organization'), needed(options, 'url')];
  const events = ((options['event'] ?? []) as string[]).map((name) => {
    const type = EVENT_TYPES.find((each) => each === name);
    return type ?? endWith(`--event ${name}: there is no such event; known are ${EVENT_TYPES.join(', ')}`);
  });
  const { secretKey, allowedCidrs } = await webhookSettings();
  // Nothing is left in the outbox: the first delivery wakes the endpoint.
  const intake = makeWebhookIntake(pool, () => undefined, secretKey, allowedCidrs);
  return addEndpoint(intake, organization, { url, events, description: null });
}

async function addChatNumber(pool: Pool, options: Options): Promise<unknown> {
  const [organization, number] = [needed(options, 'organization'), needed(options, 'number')];
  const given = needed(options, 'provider');
  const names = CHAT_PROVIDERS.join(' or ');
  const provider = CHAT_PROVIDERS.find((name) => name === given) ?? endWith(`--provider must be ${names}`);
  const optional = (name: string): string | null => (options[name] === undefined ? null : needed(options, name));
  const [phone_number_id, token] = [optional('phone-number-id'), optional('token')];
  const { secretKey } = await webhookSettings();
  return addNumber(pool, chatSeal(secretKey), organization, { number, provider, phone_number_id, token });
}

/** Whose list, and which address on it. */
async function listAndAddress(pool: Pool, options: Options): Promise<{ organization: string; email: string }> {
  const organization = needed(options, 'organization');
  const email = listedAddress(needed(options, 'email'), 'email');
  await requireOrganization(pool, organization);
  return { organization, email };
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
