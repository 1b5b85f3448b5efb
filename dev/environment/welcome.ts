import { type DemoEmail, demoRequest, timeline } from './demo.ts';
import type { Home } from './home.ts';
import type { Stack } from './stack.ts';

export function demoStory(email: DemoEmail): string[] {
  const reason = email.error === null ? '' : ` (${email.error})`;
  return [
    '',
    `Email ${email.id} to ${email.to.join(', ')}: ${email.status}${reason}`,
    ...timeline(email).map((line) => `  ${line}`),
  ];
}

export function addresses(stack: Stack, home: Pick<Home, 'logs' | 'devFile'>, email: DemoEmail | undefined): string[] {
  const { baseUrl, inboxUrl, temporal, databaseUrl, demo } = stack;
  const rows: [string, string | null][] = [
    ['API', baseUrl],
    ['its description', `${baseUrl}/openapi.json`],
    ['Dashboard', `${baseUrl}/dashboard`],
    ['  sign in as', `${demo.dashboard.email} with the password ${demo.dashboard.password}`],
    ['Inbox', inboxUrl],
    ['Temporal', temporal.uiUrl ?? temporal.address],
    ['that email in it', email && temporal.uiUrl ? workflowUrl(temporal.uiUrl, temporal.namespace, email.id) : null],
    ['Database', databaseUrl],
    ['Logs', home.logs],
    ['For programs', home.devFile],
  ];
  return [
    '',
    ...rows.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(18)}${value}`])),
    '',
    ...(stack.postmarkWebhook ? [...postmarkWebhook(stack.postmarkWebhook), ''] : []),
    ...(inboxUrl === null
      ? ['Real providers are set, so no demonstration email was sent. To send one, from a domain that they know:']
      : [`Send ${email ? 'one more' : 'an email'}, and find it in the inbox:`]),
    '',
    curl(stack),
    '',
  ];
}

/** Describes the webhook to add at Postmark, which otherwise reports nothing. Each message stream has its own webhooks. */
function postmarkWebhook({ url, user, password }: NonNullable<Stack['postmarkWebhook']>): string[] {
  return [
    'Postmark reports deliveries, bounces and the rest once a webhook of each message stream that you use names',
    `  ${url}`,
    `with all its events, and as HTTP credentials the user ${user} and the password ${password}`,
  ];
}

/** Returns the search of the Temporal UI for the workflow of a message, whose id is that of the message. */
function workflowUrl(ui: string, namespace: string, id: string): string {
  return `${ui}/namespaces/${namespace}/workflows?query=${encodeURIComponent(`WorkflowId="${id}"`)}`;
}

function curl({ baseUrl, demo }: Stack): string {
  return [
    `curl ${baseUrl}/v1/emails`,
    `-H 'Authorization: Bearer ${demo.api_key}'`,
    `-H 'Content-Type: application/json'`,
    `-d '${JSON.stringify(demoRequest(demo.domain))}'`,
  ].join(' \\\n  ');
}
