import type { Command } from 'commander';
import type { EventType } from '../../domain/event-types.ts';
import { requireOrganization } from '../../accounts/organizations.ts';
import { createEndpoint, makeWebhookIntake, removeEndpoint } from '../../accounts/webhooks.ts';
import { readAll } from '../../store/postgres/page.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { type Endpoint, listEndpoints } from '../../store/webhooks/endpoints.ts';
import { webhookSettings } from '../wiring/webhook-settings.ts';
import { audited } from './audit.ts';
import { eventOption, onDatabase, organizationOption, required, wakeRelay } from './command.ts';

/** Adds the commands about webhook endpoints. */
export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('webhook endpoints of organizations');
  webhook
    .command('add')
    .description('Create an endpoint, and print its secret this once.')
    .addOption(organizationOption())
    .addOption(required('--url <url>', 'URL that events are posted to'))
    .addOption(eventOption())
    .action(onDatabase(add));
  webhook
    .command('list')
    .description('List the endpoints of an organization, latest first.')
    .addOption(organizationOption())
    .action(onDatabase(list));
  webhook
    .command('remove')
    .alias('delete')
    .description('Delete an endpoint with its pending deliveries.')
    .addOption(organizationOption())
    .addOption(required('--webhook <id>', 'id of the endpoint'))
    .action(onDatabase(remove));
}

async function add(
  pool: Pool,
  { organization, url, event: events }: { organization: string; url: string; event: EventType[] },
): Promise<unknown> {
  const { secretKey, allowedCidrs } = await webhookSettings();
  const intake = makeWebhookIntake(pool, wakeRelay, secretKey, allowedCidrs);
  await requireOrganization(pool, organization);
  return audited(pool, { organization, action: 'webhooks.create' }, async () => {
    const { id, secret } = await createEndpoint(intake, organization, { url, events, description: null });
    return { id, secret };
  });
}

async function list(pool: Pool, { organization }: { organization: string }): Promise<Endpoint[]> {
  await requireOrganization(pool, organization);
  return readAll((after, limit) => listEndpoints(pool, organization, after, limit));
}

async function remove(pool: Pool, { organization, webhook: id }: { organization: string; webhook: string }) {
  await requireOrganization(pool, organization);
  return audited(pool, { organization, action: 'webhooks.delete' }, async () => {
    await removeEndpoint({ pool }, organization, id);
    return { id };
  });
}
