import type { Command } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { listedAddress, suppress, unsuppress } from '../../accounts/suppressions.ts';
import { listSuppressions, type Suppression } from '../../store/suppressions/suppressions.ts';
import { readAll } from '../../store/postgres/page.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { audited } from './audit.ts';
import { onDatabase, organizationOption, required } from './command.ts';

interface EntryOptions {
  readonly organization: string;
  readonly email: string;
}

/** Adds the commands about suppression lists. */
export function addSuppressionCommands(program: Command): void {
  const suppression = program
    .command('suppression')
    .description('suppression lists: addresses that an organization sends nothing to');
  const onEntry = (name: string, description: string) =>
    suppression
      .command(name)
      .description(description)
      .addOption(organizationOption())
      .addOption(required('--email <address>', 'address of the recipient'));
  onEntry('add', 'Add an address to the suppression list.').action(onDatabase(add));
  onEntry('remove', 'Remove an address from the suppression list.').alias('delete').action(onDatabase(remove));
  suppression
    .command('list')
    .description('List the suppression list of an organization.')
    .addOption(organizationOption())
    .action(onDatabase(list));
}

async function add(pool: Pool, options: EntryOptions): Promise<unknown> {
  const { organization, email } = await checkEntry(pool, options);
  const { suppressions } = await audited(pool, { organization, action: 'suppressions.create' }, () =>
    suppress(pool, organization, [email]),
  );
  return suppressions[0];
}

async function remove(pool: Pool, options: EntryOptions): Promise<unknown> {
  const { organization, email } = await checkEntry(pool, options);
  const removed = await audited(pool, { organization, action: 'suppressions.delete' }, () =>
    unsuppress(pool, organization, email),
  );
  return { email, removed };
}

async function list(pool: Pool, { organization }: { organization: string }): Promise<unknown> {
  await requireOrganization(pool, organization);
  const filters = { origin: null, email: null };
  return audited(pool, { organization, action: 'suppressions.export' }, () =>
    readAll<Suppression>((after, limit) => listSuppressions(pool, organization, filters, after, limit)),
  );
}

async function checkEntry(pool: Pool, options: EntryOptions): Promise<EntryOptions> {
  const email = listedAddress(options.email, 'email');
  await requireOrganization(pool, options.organization);
  return { organization: options.organization, email };
}
