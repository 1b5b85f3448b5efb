import type { Command } from 'commander';
import { changeBodyRetention, createOrganization } from '../../accounts/organizations.ts';
import { changeQuota } from '../../intake/quota.ts';
import { allowPasswords } from '../../accounts/sign-in-requirements.ts';
import { resumeOrganization, suspendOrganization } from '../../accounts/suspension.ts';
import { listOrganizations } from '../../store/accounts/organizations.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { audited, auditedInTransaction } from './audit.ts';
import { commandsOf, matchingText, type OfOrganization, onDatabase, option, required } from './command.ts';

export function addAccountCommands(program: Command): void {
  const organization = program
    .command('organization')
    .description('organizations, which own keys, domains, users and email');
  organization
    .command('create')
    .description('Create an organization and its first API key, which is printed this once.')
    .addOption(required('--name <name>', 'name of the organization'))
    .action(
      onDatabase(async (pool, { name }: { name: string }) => {
        const created = await createOrganization(pool, name);
        return audited(pool, { organization: created.id, action: 'organizations.create' }, async () => created);
      }),
    );
  organization.command('list').description('List all organizations.').action(onDatabase(listOrganizations));
  const onOrganization = commandsOf(organization);
  onOrganization('retention', 'Set after how many days the bodies of the email of an organization are erased.')
    .addOption(
      required('--days <days>', '0 keeps them, "default" means BODY_RETENTION_DAYS').argParser(
        matchingText(
          /^(?:\d{1,5}|default)$/,
          'a number of days, 0 to keep bodies, or "default" for BODY_RETENTION_DAYS',
        ),
      ),
    )
    .action(onDatabase(setRetention));
  onOrganization('suspend', 'Suspend an organization, so that it sends nothing until it is resumed.')
    .addOption(option('--reason <reason>', 'reason'))
    .action(onDatabase(suspend));
  onOrganization('resume', 'Resume a suspended organization.').action(
    onDatabase((pool, { organization: id }: OfOrganization) =>
      auditedInTransaction(pool, { organization: id, action: 'organizations.resume' }, (db) =>
        resumeOrganization(db, id),
      ),
    ),
  );
  onOrganization(
    'allow-passwords',
    'Let members sign in by password again, when OpenID Connect locks them out.',
  ).action(
    onDatabase((pool, { organization: id }: OfOrganization) =>
      auditedInTransaction(pool, { organization: id, action: 'organizations.allow-passwords' }, (db) =>
        allowPasswords(db, id),
      ),
    ),
  );

  const quota = program.command('quota').description('how many emails organizations can send in a month');
  commandsOf(quota)('set', 'Set the quota of an organization, and print how much of it is used.')
    .addOption(
      required('--monthly <emails>', 'emails per calendar month (UTC), or "none" for no quota').argParser(
        matchingText(/^(?:\d{1,15}|none)$/, 'a number of emails, 0 or more, or "none" for no quota'),
      ),
    )
    .action(onDatabase(setQuota));
}

async function setRetention(pool: Pool, { organization, days }: OfOrganization & { days: string }) {
  const bodyRetentionDays = days === 'default' ? null : Number(days);
  const change = { organization, action: 'organizations.update', detail: { body_retention_days: bodyRetentionDays } };
  await audited(pool, change, () => changeBodyRetention(pool, organization, bodyRetentionDays));
  return { organization, body_retention_days: bodyRetentionDays };
}

function suspend(pool: Pool, { organization, reason = null }: OfOrganization & { reason?: string | null }) {
  return auditedInTransaction(pool, { organization, action: 'organizations.suspend', detail: { reason } }, (db) =>
    suspendOrganization(db, organization, reason),
  );
}

async function setQuota(pool: Pool, { organization, ...options }: OfOrganization & { monthly: string }) {
  const quota = options.monthly === 'none' ? null : Number(options.monthly);
  const change = { organization, action: 'quota.update', detail: { monthly: quota } };
  const { monthly, used, resets_at } = await audited(pool, change, () => changeQuota(pool, organization, quota));
  return { organization, monthly, used, resets_at };
}
