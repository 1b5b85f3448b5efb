import { type Command, InvalidArgumentError, Option } from 'commander';
import { pino } from 'pino';
import {
  registerDomainForOperator,
  changeTracking,
  checkDomain,
  findDomainId,
  removeDomain,
  showDomain,
} from '../../accounts/domains.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { makeSenderDomains, sendersOf } from '../wiring/sender-domains.ts';
import { readCommandSettings } from '../wiring/command-settings.ts';
import { audited } from './audit.ts';
import { commandsOf, type OfOrganization, onDatabase, onList, required, wakeRelay } from './command.ts';

interface DomainOptions extends OfOrganization {
  readonly name: string;
}

export function addDomainCommands(program: Command): void {
  const onOrganization = commandsOf(
    program.command('domain').description('domains that organizations send email from'),
  );
  const onDomain = (name: string, description: string) =>
    onOrganization(name, description).addOption(required('--name <domain>', 'name of the domain'));
  onDomain('add', 'Register a domain, and print the records for its DNS.')
    .option('--verified', 'trust the domain without asking DNS')
    .action(onDatabase(add));
  onOrganization('list', 'List the domains of an organization.').action(onList(listDomains));
  onDomain('show', 'Show a domain with the records for its DNS.').action(
    onDatabase(async (pool, { organization, name }: DomainOptions) =>
      show(pool, organization, await findDomainId(pool, organization, name)),
    ),
  );
  onDomain('verify', 'Look up the records of a domain in DNS now.').action(onDatabase(verify));
  onDomain('tracking', 'Switch open and click tracking of email from a domain.')
    .addOption(new Option('--opens <switch>', 'track opens by an image').choices(['on', 'off']))
    .addOption(new Option('--clicks <switch>', 'track clicks by redirecting links').choices(['on', 'off']))
    .action(onDatabase(track));
  onDomain('remove', 'Remove a domain.').alias('delete').action(onDatabase(remove));
}

async function show(pool: Pool, organization: string, id: string) {
  return showDomain({ pool, senders: sendersOf(await readCommandSettings()) }, organization, id);
}

/**
 * Adds a domain. Prints the DNS records of a domain that is not trusted; the DKIM record is missing until the worker has
 * created the key.
 */
async function add(pool: Pool, options: DomainOptions & { readonly verified?: boolean }) {
  const { organization, name, verified: trusted = false } = options;
  const change = { organization, action: 'domains.create', detail: { name, trusted } };
  const domain = await audited(pool, change, () => registerDomainForOperator(pool, organization, name, trusted));
  return trusted ? domain : { ...domain, records: (await show(pool, organization, domain.id)).records };
}

async function verify(pool: Pool, { organization, name }: DomainOptions) {
  const id = await findDomainId(pool, organization, name);
  const settings = await readCommandSettings('SECRET_KEY');
  const deps = makeSenderDomains(settings, pool, secretKeysOf(settings), pino({ level: 'silent' }));
  return audited(pool, { organization, action: 'domains.verify' }, () =>
    checkDomain({ ...deps, wakeRelay }, organization, id),
  );
}

async function track(
  pool: Pool,
  { organization, name, opens, clicks }: DomainOptions & { readonly opens?: string; readonly clicks?: string },
) {
  if (opens === undefined && clicks === undefined) throw new InvalidArgumentError('--opens or --clicks is missing');
  const id = await findDomainId(pool, organization, name);
  const settings = await readCommandSettings();
  const change = {
    ...(opens !== undefined && { open_tracking: opens === 'on' }),
    ...(clicks !== undefined && { click_tracking: clicks === 'on' }),
  };
  const deps = { pool, senders: sendersOf(settings), publicUrl: settings.PUBLIC_URL };
  return audited(pool, { organization, action: 'domains.update', detail: { name, ...change } }, () =>
    changeTracking(deps, organization, id, change),
  );
}

async function remove(pool: Pool, { organization, name }: DomainOptions) {
  const id = await findDomainId(pool, organization, name);
  return audited(pool, { organization, action: 'domains.delete', detail: { name } }, async () => {
    await removeDomain({ pool, wakeRelay }, organization, id);
    return { id };
  });
}
