import type { Command } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { suppress, unsuppress } from '../../accounts/suppressions.ts';
import { requireAddress } from '../../domain/email/address.ts';
import { listSuppressions, type Suppression } from '../../store/suppressions/suppressions.ts';
import { readAll } from '../../store/postgres/page.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { audited } from './audit.ts';
import { commandsOf, type OfOrganization, onDatabase, required, wakeRelay } from './command.ts';

interface EntryOptions extends OfOrganization {
  readonly email: string;
}

export function addSuppressionCommands(program: Command): void {
  const onOrganization = commandsOf(
    program.command('suppression').description('suppression lists: addresses that an organization sends nothing to'),
  );
  const onEntry = (name: string, description: string) =>
    onOrganization(name, description).addOption(required('--email <address>', 'address of the recipient'));
  onEntry('add', 'Add an address to the suppression list.').action(onDatabase(add));
  onEntry('remove', 'Remove an address from the suppression list.').alias('delete').action(onDatabase(remove));
  onOrganization('list', 'List the suppression list of an organization.').action(onDatabase(list));
}

async function add(pool: Pool, options: EntryOptions): Promise<unknown> {
  const { organization, email } = await checkEntry(pool, options);
  return audited(pool, { organization, action: 'suppressions.create' }, async () => {
    const { suppressions } = await suppress({ pool, wakeRelay }, organization, [email]);
    return suppressions[0];
  });
}

async function remove(pool: Pool, options: EntryOptions): Promise<unknown> {
  const { organization, email } = await checkEntry(pool, options);
  const removed = await audited(pool, { organization, action: 'suppressions.delete', detail: { email } }, () =>
    unsuppress({ pool, wakeRelay }, organization, email),
  );
  return { email, removed };
}

async function list(pool: Pool, { organization }: OfOrganization): Promise<unknown> {
  await requireOrganization(pool, organization);
  const filters = { origin: null, email: null };
  return audited(pool, { organization, action: 'suppressions.export' }, () =>
    readAll<Suppression>((after, limit) => listSuppressions(pool, organization, filters, after, limit)),
  );
}

async function checkEntry(pool: Pool, { organization, email }: EntryOptions): Promise<EntryOptions> {
  const address = requireAddress(email, 'email');
  await requireOrganization(pool, organization);
  return { organization, email: address };
}
