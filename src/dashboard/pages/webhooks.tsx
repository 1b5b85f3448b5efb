import { Type } from 'typebox';
import { createEndpoint } from '../../accounts/webhooks.ts';
import { reportEndpoint } from '../../intake/account-notices.ts';
import { type DeliveryHealth, readDeliveryHealth } from '../../store/webhooks/delivery-search.ts';
import { type Endpoint, listEndpoints } from '../../store/webhooks/endpoints.ts';
import { act } from '../act.ts';
import { curl, Empty, LinkHeading, StatusBadge, Sub, Time, TimeCell } from '../elements.tsx';
import { BLANK } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow } from '../page.ts';
import {
  CRUMBS,
  EndpointFields,
  endpointForm,
  endpointDepsOf,
  PATH,
  secretPage,
  stateOf,
  successRate,
} from './webhook-form.tsx';

const EXAMPLE = { url: 'https://example.com/webhooks', events: ['email.delivered', 'email.bounced'] };

const list = listPage({
  title: 'Webhooks',
  caption: 'Endpoints, newest first',
  columns: ['Endpoint', 'Status', 'Last 24 hours', 'Events', 'Created'],
  add: { href: `${PATH}/new`, label: 'Add endpoint' },
  read: async ({ pool, organization }, after, limit) => {
    const endpoints = await listEndpoints(pool, organization.id, after, limit);
    const health = await readDeliveryHealth(
      pool,
      endpoints.map(({ id }) => id),
    );
    return endpoints.map((endpoint) => ({ ...endpoint, health: health.get(endpoint.id) }));
  },
  row: ({ health, ...endpoint }) => <EndpointRow endpoint={endpoint} health={health} />,
  empty: (context) => (
    <Empty title="No endpoints yet" command={curl(context, '/v1/webhooks', EXAMPLE)}>
      <p>
        An endpoint is a URL of yours that receives events: deliveries, bounces, unsubscribes and more.
        {context.role !== 'owner' && ' Owners add them here.'}
      </p>
    </Empty>
  ),
});

function EndpointRow({ endpoint, health }: { endpoint: Endpoint; health: DeliveryHealth | undefined }): Html {
  const { id, url, description, disabled_reason: reason, failing_since: failing, events } = endpoint;
  const state = stateOf(endpoint);
  return (
    <tr>
      <LinkHeading href={`${PATH}/${id}`} text={description ?? url} sub={description === null ? null : url} />
      <td>
        <StatusBadge status={state} />
        {reason !== null && <Sub text={reason} />}
        {state === 'failing' && (
          <span class="sub">
            since <Time at={failing} short />
          </span>
        )}
      </td>
      <td safe>{successRate(health)}</td>
      <td safe>{events.length === 0 ? 'all' : events.join(', ')}</td>
      <TimeCell at={endpoint.created_at} short />
    </tr>
  );
}

const showNew = page(Type.Object({}), async (context) => newPage(context, BLANK));

const create = action(EndpointFields, {
  renderForm: newPage,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.create',
      run: async () => {
        const { deps, organization, user } = context;
        const endpoint = await createEndpoint(endpointDepsOf(context), organization.id, { url, description, events });
        await reportEndpoint(deps, organization.id, endpoint, user.email);
        return endpoint;
      },
      target: ({ id }) => id,
      detail: { url },
      next: (endpoint) => secretPage(context, endpoint, 'Endpoint added. It receives events from now on.'),
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', create],
];

function newPage(context: Context, formState: FormState): Html {
  return (
    <Layout context={context} title="Add endpoint" crumbs={CRUMBS}>
      {endpointForm(context, `${PATH}/new`, formState, null)}
    </Layout>
  );
}
