import type { Command } from 'commander';
import { OPERATOR } from '../../accounts/audit.ts';
import { issueKeyForOperator, revokeKeyForOperator } from '../../accounts/keys.ts';
import { insertAudit } from '../../store/accounts/audit.ts';
import { listKeys, organizationOfKey, type Preset, PRESETS } from '../../store/accounts/keys.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { auditedInTransaction } from './audit.ts';
import { commandsOf, type OfOrganization, onDatabase, onList, option, repeatable, required } from './command.ts';

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys of organizations');
  const onOrganization = commandsOf(key);
  onOrganization('create', 'Create an API key, which is printed this once.')
    .addOption(option('--preset <preset>', 'permissions of the key').choices(PRESETS).default('full_access'))
    .addOption(repeatable('--domain <name>', 'domain of the organization that the key is limited to'))
    .action(onDatabase(create));
  onOrganization('list', 'List the API keys of an organization that are not revoked, latest first.').action(
    onList(listKeys),
  );
  key
    .command('revoke')
    .alias('remove')
    .description('Revoke an API key.')
    .addOption(required('--key <key>', 'the key or its id'))
    .action(onDatabase(revoke));
}

function create(pool: Pool, options: OfOrganization & { readonly preset: Preset; readonly domain: string[] }) {
  const { organization, preset, domain: domains } = options;
  return auditedInTransaction(pool, { organization, action: 'keys.create', detail: { preset, domains } }, (db) =>
    issueKeyForOperator(db, organization, preset, domains),
  );
}

async function revoke(pool: Pool, { key }: { key: string }): Promise<{ id: string }> {
  return transaction(pool, async (client) => {
    const ended = await revokeKeyForOperator(client, key);
    const organization = await organizationOfKey(client, ended.id);
    const change = { action: 'keys.delete', target: ended.id, detail: {} };
    if (organization !== undefined) await insertAudit(client, { org_id: organization, ...OPERATOR, ...change });
    return ended;
  });
}
