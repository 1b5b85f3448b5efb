import { addEndpoint, makeWebhookIntake } from '../../intake/webhooks.ts';
import type { Pool } from '../../store/pool.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { audited } from './audit.ts';
import { type DatabaseCommand, eventTypes, needed, type Options } from './command.ts';

/** Endpoints of customers. */
export const WEBHOOKS = {
  'webhook add': { usage: '--organization O --url U [--event T]…', run: addWebhook },
} satisfies Record<string, DatabaseCommand>;

async function addWebhook(pool: Pool, options: Options): Promise<unknown> {
  const [organization, url] = [needed(options, 'organization'), needed(options, 'url')];
  const events = eventTypes(options);
  const { secretKey, allowedCidrs } = await webhookSettings();
  // Nothing is left in the outbox: the first delivery wakes the endpoint.
  const intake = makeWebhookIntake(pool, () => undefined, secretKey, allowedCidrs);
  return audited(pool, { organization, action: 'webhooks.create' }, () =>
    addEndpoint(intake, organization, { url, events, description: null }),
  );
}
