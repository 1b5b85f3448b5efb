import type { Command } from 'commander';
import { pino } from 'pino';
import { requireOrganization } from '../../accounts/organizations.ts';
import {
  addDomain,
  checkDomain,
  findDomainId,
  removeDomain,
  type ShownDomain,
  showDomain,
} from '../../accounts/domains.ts';
import { type Domain, listDomains } from '../../store/domains/domains.ts';
import { readAll } from '../../store/postgres/page.ts';
import type { Db, Pool } from '../../store/postgres/pool.ts';
import { readSettings } from '../env.ts';
import { makeSenderDomains, sendersOf } from '../wiring/sender-domains.ts';
import { webhookSettings } from '../wiring/webhook-settings.ts';
import { audited } from './audit.ts';
import { onDatabase, organizationOption, required, wakeRelay } from './command.ts';

interface DomainOptions {
  readonly organization: string;
  readonly name: string;
}

/** Adds the commands about domains that email is sent from. */
export function addDomainCommands(program: Command): void {
  const domain = program.command('domain').description('domains that organizations send email from');
  const nameOption = () => required('--name <domain>', 'name of the domain');
  const onDomain = (name: string, description: string) =>
    domain.command(name).description(description).addOption(organizationOption()).addOption(nameOption());
  onDomain('add', 'Register a domain, and print the records for its DNS.')
    .option('--verified', 'trust the domain without asking DNS')
    .action(
      onDatabase((pool, { organization, name, verified }: DomainOptions & { verified?: boolean }) =>
        addByHand(pool, organization, name, verified === true),
      ),
    );
  domain
    .command('list')
    .description('List the domains of an organization.')
    .addOption(organizationOption())
    .action(onDatabase((pool, { organization }: { organization: string }) => listByHand(pool, organization)));
  onDomain('show', 'Show a domain with the records for its DNS.').action(onDatabase(showByHand));
  onDomain('verify', 'Look up the records of a domain in DNS now.').action(onDatabase(verifyByHand));
  onDomain('remove', 'Remove a domain.').alias('delete').action(onDatabase(removeByHand));
}

/** A domain that is not trusted is printed with its records; that of DKIM follows when the worker has created its key. */
async function addByHand(
  pool: Pool,
  organization: string,
  name: string,
  trusted: boolean,
): Promise<Domain | ShownDomain> {
  const change = { organization, action: 'domains.create', detail: { name, trusted } };
  const domain = await audited(pool, change, () => addDomain(pool, organization, name, trusted));
  if (trusted) return domain;
  const { records } = await showDomain({ pool, senders: sendersOf(readSettings()) }, organization, domain.id);
  return { ...domain, records };
}

async function listByHand(db: Db, organization: string): Promise<Domain[]> {
  await requireOrganization(db, organization);
  return readAll((after, limit) => listDomains(db, organization, after, limit));
}

async function showByHand(pool: Pool, { organization, name }: DomainOptions): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  return showDomain({ pool, senders: sendersOf(readSettings()) }, organization, id);
}

async function verifyByHand(pool: Pool, { organization, name }: DomainOptions): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  const { secretKey } = await webhookSettings();
  const deps = makeSenderDomains(readSettings(), pool, secretKey, pino({ level: 'silent' }));
  return audited(pool, { organization, action: 'domains.verify' }, () =>
    checkDomain({ ...deps, wakeRelay }, organization, id),
  );
}

async function removeByHand(pool: Pool, { organization, name }: DomainOptions): Promise<{ id: string }> {
  const id = await findDomainId(pool, organization, name);
  return audited(pool, { organization, action: 'domains.delete', detail: { name } }, async () => {
    await removeDomain({ pool, wakeRelay }, organization, id);
    return { id };
  });
}
