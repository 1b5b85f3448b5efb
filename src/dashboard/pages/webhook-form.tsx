import { Type } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import { ENDPOINT_DESCRIPTION_LENGTH, ENDPOINT_URL_LENGTH } from '../../domain/webhooks.ts';
import { makeWebhookIntake, type WebhookIntakeDeps } from '../../accounts/webhooks.ts';
import type { Endpoint } from '../../store/webhooks/endpoints.ts';
import { Copy } from '../elements.tsx';
import { Checkbox, field, Form, FormProblem } from '../form-elements.tsx';
import { type Crumb, Layout } from '../layout.tsx';
import type { Context, Filled, Html } from '../page.ts';

export const PATH = '/dashboard/webhooks';
export const CRUMBS: readonly Crumb[] = [{ path: PATH, name: 'Webhooks' }];

export const EndpointFields = Type.Object({
  url: Type.String({ maxLength: ENDPOINT_URL_LENGTH }),
  description: Type.Optional(Type.String({ maxLength: ENDPOINT_DESCRIPTION_LENGTH, 'x-rule': 'one-line' })),
  events: Type.Optional(Type.Array(Type.Enum([...EVENT_TYPES]))),
});

export function intakeOf({ deps }: Context): WebhookIntakeDeps {
  return makeWebhookIntake(deps.pool, deps.wakeRelay, deps.secretKey, deps.webhookAllowCidrs, deps.limits.organization);
}

export function nameOf({ description, url }: Endpoint): string {
  return description ?? url;
}

export function crumbsTo(endpoint: Endpoint): readonly Crumb[] {
  return [...CRUMBS, { path: `${PATH}/${endpoint.id}`, name: nameOf(endpoint) }];
}

/** @param endpoint null for a new one */
export function endpointForm(context: Context, action: string, filled: Filled, endpoint: Endpoint | null): Html {
  return (
    <Form visit={context} action={action} class="card">
      <FormProblem filled={filled} />
      {field(filled, 'url', 'URL', {
        type: 'url',
        value: endpoint?.url,
        placeholder: 'https://example.com/webhooks',
        hint: 'https, on the public internet. Answer with any 2xx within 15 seconds.',
        required: true,
      })}
      {field(filled, 'description', 'Description', {
        value: endpoint?.description ?? undefined,
        hint: 'Your own words; may stay empty.',
      })}
      <EventBoxes filled={filled} chosen={endpoint?.events ?? []} />
      <button class="primary">{endpoint === null ? 'Add the endpoint' : 'Save'}</button>
    </Form>
  );
}

const GROUPS: readonly (readonly [title: string, prefix: string])[] = [
  ['Email', 'email.'],
  ['Batches', 'batch.'],
  ['Chat messages', 'chatapp.'],
  ['Domains', 'domain.'],
  ['Suppressions', 'suppression.'],
  ['Webhooks', 'webhook.'],
];

function EventBoxes({ filled, chosen }: { filled: Filled; chosen: readonly string[] }): Html {
  const problem = filled.problems['events'];
  const typesOf = (prefix: string): readonly EventType[] => EVENT_TYPES.filter((type) => type.startsWith(prefix));
  return (
    <fieldset>
      <legend>Events</legend>
      <p class="hint">None ticked means all of them, also types that come later.</p>
      {problem !== undefined && (
        <p class="problem" safe>
          {problem}
        </p>
      )}
      {GROUPS.map(([title, prefix]) => (
        <fieldset class="group">
          <legend safe>{title}</legend>
          {typesOf(prefix).map((type) => (
            <Checkbox label={type} name="events" value={type} given={filled.given} checked={chosen.includes(type)} />
          ))}
        </fieldset>
      ))}
    </fieldset>
  );
}

export function secretPage(context: Context, endpoint: Endpoint & { readonly secret: string }, note: string): Html {
  return (
    <Layout context={context} title="Signing secret" crumbs={crumbsTo(endpoint)}>
      <section class="card">
        <p safe>{note}</p>
        <Copy value={endpoint.secret} label="Copy the secret" />
        <p class="hint">
          It signs what is posted there, according to Standard Webhooks 1.0.0: any library for that verifies it. It is
          shown only now.
        </p>
        <p>
          <a href={`${PATH}/${endpoint.id}`}>Go to the endpoint</a>
        </p>
      </section>
    </Layout>
  );
}
