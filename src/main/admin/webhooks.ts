import type { Command } from 'commander';
import type { EventType } from '../../domain/event-types.ts';
import { requireOrganization } from '../../accounts/organizations.ts';
import { createEndpoint, makeEndpointDeps, removeEndpoint } from '../../accounts/webhooks.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { listEndpoints } from '../../store/webhooks/endpoints.ts';
import { readCommandSettings } from '../wiring/command-settings.ts';
import { audited } from './audit.ts';
import { commandsOf, eventOption, type OfOrganization, onDatabase, onList, required, wakeRelay } from './command.ts';

export function addWebhookCommands(program: Command): void {
  const onOrganization = commandsOf(program.command('webhook').description('webhook endpoints of organizations'));
  onOrganization('add', 'Create an endpoint, and print its secret this once.')
    .addOption(required('--url <url>', 'URL that events are posted to'))
    .addOption(eventOption())
    .action(onDatabase(add));
  onOrganization('list', 'List the endpoints of an organization, latest first.').action(onList(listEndpoints));
  onOrganization('remove', 'Delete an endpoint with its pending deliveries.')
    .alias('delete')
    .addOption(required('--webhook <id>', 'id of the endpoint'))
    .action(onDatabase(remove));
}

async function add(pool: Pool, options: OfOrganization & { readonly url: string; readonly event: EventType[] }) {
  const { organization, url, event: events } = options;
  const settings = await readCommandSettings('SECRET_KEY');
  const allowedCidrs = settings.WEBHOOK_ALLOW_CIDRS ?? [];
  const intake = makeEndpointDeps(pool, wakeRelay, secretKeysOf(settings), allowedCidrs);
  await requireOrganization(pool, organization);
  return audited(pool, { organization, action: 'webhooks.create' }, async () => {
    const { id, secret } = await createEndpoint(intake, organization, { url, events, description: null });
    return { id, secret };
  });
}

async function remove(pool: Pool, { organization, webhook: id }: OfOrganization & { readonly webhook: string }) {
  await requireOrganization(pool, organization);
  return audited(pool, { organization, action: 'webhooks.delete' }, async () => {
    await removeEndpoint({ pool }, organization, id);
    return { id };
  });
}
