import { Type } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import { ENDPOINT_DESCRIPTION_LENGTH, ENDPOINT_URL_LENGTH } from '../../domain/webhooks.ts';
import { type EndpointDeps, makeEndpointDeps } from '../../accounts/webhooks.ts';
import { type DeliveryHealth, HEALTH_SAMPLE } from '../../store/webhooks/delivery-search.ts';
import type { Endpoint } from '../../store/webhooks/endpoints.ts';
import { Copy } from '../elements.tsx';
import { Checkbox, field, Form, FormProblem, Problem } from '../form-elements.tsx';
import { type Crumb, Layout } from '../layout.tsx';
import type { Context, FormState, Html } from '../page.ts';
import { formatNumber } from '../../lib/text.ts';

export const PATH = '/dashboard/webhooks';
export const CRUMBS: readonly Crumb[] = [{ path: PATH, name: 'Webhooks' }];

export const EndpointFields = Type.Object({
  url: Type.String({ maxLength: ENDPOINT_URL_LENGTH }),
  description: Type.Optional(Type.String({ maxLength: ENDPOINT_DESCRIPTION_LENGTH, 'x-rule': 'one-line' })),
  events: Type.Optional(Type.Array(Type.Enum([...EVENT_TYPES]))),
});

export function endpointDepsOf({ deps }: Context): EndpointDeps {
  return makeEndpointDeps(deps.pool, deps.wakeRelay, deps.secretKey, deps.webhookAllowCidrs, deps.limits.organization);
}

export function nameOf({ description, url }: Endpoint): string {
  return description ?? url;
}

export function crumbsTo(endpoint: Endpoint): readonly Crumb[] {
  return [...CRUMBS, { path: `${PATH}/${endpoint.id}`, name: nameOf(endpoint) }];
}

/** Returns the status of an endpoint; `failing` if it is enabled but its deliveries have been failing. */
export function stateOf({ status, failing_since: failing }: Endpoint): string {
  return status === 'enabled' && failing !== null ? 'failing' : status;
}

export function successRate(health: DeliveryHealth | undefined): string {
  if (!health || health.attempted === 0) return 'no deliveries';
  const { attempted, succeeded } = health;
  // Capped, so that 99.96 % is not shown as 100 %.
  const percent = succeeded === attempted ? '100' : Math.min(99.9, (100 * succeeded) / attempted).toFixed(1);
  return `${percent} % of ${attempted === HEALTH_SAMPLE ? 'the latest ' : ''}${formatNumber(attempted)}`;
}

/** The form of an endpoint. @param endpoint null for a new one */
export function endpointForm(context: Context, action: string, formState: FormState, endpoint: Endpoint | null): Html {
  return (
    <Form visit={context} action={action} class="card">
      <FormProblem formState={formState} />
      {field(formState, 'url', 'URL', {
        type: 'url',
        value: endpoint?.url,
        placeholder: 'https://example.com/webhooks',
        hint: 'A public https URL that responds with 2xx within 15 seconds.',
        required: true,
      })}
      {field(formState, 'description', 'Description', {
        value: endpoint?.description ?? undefined,
        hint: 'Optional. Shown in place of the URL.',
      })}
      <EventBoxes formState={formState} chosen={endpoint?.events ?? []} />
      <button class="primary">{endpoint === null ? 'Add endpoint' : 'Save'}</button>
    </Form>
  );
}

type Topic = EventType extends `${infer Name}.${string}` ? Name : never;

const TOPICS: Readonly<Record<Topic, string>> = {
  email: 'Email',
  batch: 'Batches',
  chatapp: 'WhatsApp',
  sms: 'SMS',
  domain: 'Domains',
  suppression: 'Suppressions',
  webhook: 'Webhooks',
};

function EventBoxes({ formState, chosen }: { formState: FormState; chosen: readonly string[] }): Html {
  const typesOf = (topic: string): readonly EventType[] => EVENT_TYPES.filter((type) => type.startsWith(`${topic}.`));
  return (
    <fieldset>
      <legend>Events</legend>
      <p class="hint">Leave empty to receive all events, including types that are added later.</p>
      <Problem text={formState.problems['events']} />
      {Object.entries(TOPICS).map(([topic, title]) => (
        <fieldset class="group">
          <legend safe>{title}</legend>
          {typesOf(topic).map((type) => (
            <Checkbox label={type} name="events" value={type} input={formState.input} checked={chosen.includes(type)} />
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
        <Copy value={endpoint.secret} label="Copy secret" />
        <p class="hint">
          Verify deliveries with it and any library for Standard Webhooks 1.0.0. Owners can reveal it again on the page
          of the endpoint.
        </p>
        <p>
          <a href={`${PATH}/${endpoint.id}`}>Go to the endpoint</a>
        </p>
      </section>
    </Layout>
  );
}
