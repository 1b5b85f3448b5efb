import type { DevFile } from '../../src/main/dev-file.ts';
import type { Stack } from './stack.ts';
import type { Processes } from './supervisor.ts';

/** Returns the contents of `dev.json`, which includes secrets. */
export function devFileOf(
  { baseUrl, databaseUrl, temporal, inboxUrl, demo }: Omit<Stack, 'postmarkWebhook' | 'settings'>,
  processes: Processes,
): DevFile {
  return {
    base_url: baseUrl,
    api_key: demo.api_key,
    organization_id: demo.organization_id,
    from: `hello@${demo.domain}`,
    domain: demo.domain,
    sms_from: demo.sms_from,
    dashboard_url: `${baseUrl}/dashboard`,
    dashboard_email: demo.dashboard.email,
    dashboard_password: demo.dashboard.password,
    temporal_address: temporal.address,
    temporal_namespace: temporal.namespace,
    temporal_ui_url: temporal.uiUrl,
    database_url: databaseUrl,
    inbox_url: inboxUrl,
    processes: Object.fromEntries(Object.entries(processes).map(([name, { pid }]) => [name, pid])),
  };
}
