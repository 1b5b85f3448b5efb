import type { Command } from 'commander';
import { createOrganization } from '../../accounts/organizations.ts';
import { giveBodyRetention } from '../../intake/body-retention.ts';
import { giveQuota } from '../../intake/quota.ts';
import { resumeOrganization, suspendOrganization } from '../../accounts/suspension.ts';
import { listOrganizations } from '../../store/accounts/organizations.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { audited, auditedTogether } from './audit.ts';
import { matching, onDatabase, option, organizationOption, required } from './command.ts';

/** Adds the commands about organizations and their quotas. */
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
        const made = await createOrganization(pool, name);
        return audited(pool, { organization: made.id, action: 'organizations.create' }, async () => made);
      }),
    );
  organization.command('list').description('List all organizations.').action(onDatabase(listOrganizations));
  organization
    .command('retention')
    .description('Set after how many days the bodies of the email of an organization are erased.')
    .addOption(organizationOption())
    .addOption(
      required('--days <days>', '0 keeps them, "default" means BODY_RETENTION_DAYS').argParser(
        matching(/^(?:\d{1,5}|default)$/, 'a number of days, 0 to keep bodies, or "default" for BODY_RETENTION_DAYS'),
      ),
    )
    .action(onDatabase(setRetention));
  organization
    .command('suspend')
    .description('Suspend an organization, so that it sends nothing until it is resumed.')
    .addOption(organizationOption())
    .addOption(option('--reason <reason>', 'reason'))
    .action(onDatabase(suspend));
  organization
    .command('resume')
    .description('Resume a suspended organization.')
    .addOption(organizationOption())
    .action(onDatabase(resume));

  program
    .command('quota')
    .description('how many emails organizations can send in a month')
    .command('set')
    .description('Set the quota of an organization, and print how much of it is used.')
    .addOption(organizationOption())
    .addOption(
      required('--monthly <emails>', 'emails per calendar month (UTC), or "none" for no quota').argParser(
        matching(/^(?:\d{1,15}|none)$/, 'a number of emails, 0 or more, or "none" for no quota'),
      ),
    )
    .action(onDatabase(setQuota));
}

async function setRetention(pool: Pool, { organization, days }: { organization: string; days: string }) {
  const bodyRetentionDays = days === 'default' ? null : Number(days);
  const change = { organization, action: 'organizations.update', detail: { body_retention_days: bodyRetentionDays } };
  await audited(pool, change, () => giveBodyRetention(pool, organization, bodyRetentionDays));
  return { organization, body_retention_days: bodyRetentionDays };
}

async function suspend(pool: Pool, options: { organization: string; reason?: string }): Promise<object> {
  const { organization, reason = null } = options;
  return auditedTogether(pool, { organization, action: 'organizations.suspend', detail: { reason } }, (db) =>
    suspendOrganization(db, organization, reason),
  );
}

async function resume(pool: Pool, { organization }: { organization: string }): Promise<object> {
  return auditedTogether(pool, { organization, action: 'organizations.resume' }, (db) =>
    resumeOrganization(db, organization),
  );
}

async function setQuota(pool: Pool, options: { organization: string; monthly: string }) {
  const { organization } = options;
  const quota = options.monthly === 'none' ? null : Number(options.monthly);
  const change = { organization, action: 'quota.update', detail: { monthly: quota } };
  const { monthly, used, resets_at } = await audited(pool, change, () => giveQuota(pool, organization, quota));
  return { organization, monthly, used, resets_at };
}
