import type { Command } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { OPERATOR } from '../../accounts/actor.ts';
import { createKey, endKey } from '../../accounts/keys.ts';
import { insertAudit } from '../../store/accounts/audit.ts';
import { type KeySummary, listKeys, organizationOfKey, type Preset, PRESETS } from '../../store/accounts/keys.ts';
import { readAll } from '../../store/postgres/page.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { auditedTogether } from './audit.ts';
import { onDatabase, option, organizationOption, repeatable, required } from './command.ts';

/** Adds the commands about API keys. */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys of organizations');
  key
    .command('create')
    .description('Create an API key, which is printed this once.')
    .addOption(organizationOption())
    .addOption(option('--preset <preset>', 'permissions of the key').choices(PRESETS).default('full_access'))
    .addOption(repeatable('--domain <name>', 'domain of the organization that the key is limited to'))
    .action(onDatabase(create));
  key
    .command('list')
    .description('List the API keys of an organization that are not revoked, latest first.')
    .addOption(organizationOption())
    .action(onDatabase(list));
  key
    .command('revoke')
    .alias('remove')
    .description('Revoke an API key.')
    .addOption(required('--key <key>', 'the key or its id'))
    .action(onDatabase(revoke));
}

interface KeyOptions {
  readonly organization: string;
  readonly preset: Preset;
  readonly domain: string[];
}

async function create(pool: Pool, { organization, preset, domain: domains }: KeyOptions): Promise<object> {
  return auditedTogether(pool, { organization, action: 'keys.create', detail: { preset, domains } }, (db) =>
    createKey(db, organization, preset, domains),
  );
}

async function list(pool: Pool, { organization }: { organization: string }): Promise<KeySummary[]> {
  await requireOrganization(pool, organization);
  return readAll((after, limit) => listKeys(pool, organization, after, limit));
}

async function revoke(pool: Pool, { key }: { key: string }): Promise<{ id: string }> {
  return transaction(pool, async (client) => {
    const ended = await endKey(client, key);
    const organization = await organizationOfKey(client, ended.id);
    const change = { action: 'keys.delete', target: ended.id, detail: {} };
    if (organization !== undefined) await insertAudit(client, { org_id: organization, ...OPERATOR, ...change });
    return ended;
  });
}
