import { Type } from 'typebox';
import { createEndpoint } from '../../accounts/webhooks.ts';
import { type Endpoint, listEndpoints } from '../../store/webhooks/endpoints.ts';
import { act } from '../act.ts';
import { curl, Empty, StatusBadge, Sub, TimeCell } from '../elements.tsx';
import { BLANK } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, page, type PageRow } from '../page.ts';
import { CRUMBS, EndpointFields, EndpointForm, intakeOf, nameOf, PATH, SecretPage } from './webhook-form.tsx';

const list = listPage({
  title: 'Webhooks',
  caption: 'Endpoints, newest first',
  columns: ['Endpoint', 'Status', 'Events', 'Created'],
  add: { href: `${PATH}/new`, label: 'Add an endpoint' },
  read: ({ pool, organization }, place, limit) => listEndpoints(pool, organization.id, place, limit),
  row: (endpoint) => <EndpointRow endpoint={endpoint} />,
  empty: (context) => <NoEndpoint context={context} />,
});

const showNew = page(Type.Object({}), async (context) => <NewPage context={context} filled={BLANK} />);

const create = action(EndpointFields, {
  again: (context, filled) => <NewPage context={context} filled={filled} />,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.create',
      run: () => createEndpoint(intakeOf(context), context.organization.id, { url, description, events }),
      target: ({ id }) => id,
      detail: { url },
      next: (made) => (
        <SecretPage context={context} endpoint={made} note="The endpoint gets what happens from now on." />
      ),
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', create],
];

function NoEndpoint({ context }: { context: Context }): Html {
  const example = { url: 'https://example.com/webhooks', events: ['email.delivered', 'email.bounced'] };
  return (
    <Empty title="No endpoint yet" command={curl(context, 'POST', '/v1/webhooks', example)}>
      <p>
        An endpoint is a URL of yours that receives events: deliveries, bounces, unsubscribes and more.
        {context.role !== 'owner' && ' Owners add them here.'}
      </p>
    </Empty>
  );
}

function EndpointRow({ endpoint }: { endpoint: Endpoint }): Html {
  const { id, url, description, status, disabled_reason: reason, events, created_at: createdAt } = endpoint;
  return (
    <tr>
      <th scope="row">
        <a href={`${PATH}/${id}`} safe>
          {nameOf(endpoint)}
        </a>
        {description !== null && <Sub text={url} />}
      </th>
      <td>
        <StatusBadge status={status} />
        {reason !== null && <Sub text={reason} />}
      </td>
      <td safe>{events.length === 0 ? 'all' : events.join(', ')}</td>
      <TimeCell at={createdAt} />
    </tr>
  );
}

function NewPage({ context, filled }: { context: Context; filled: Filled }): Html {
  return (
    <Layout context={context} title="Add an endpoint" crumbs={CRUMBS}>
      <EndpointForm context={context} action={`${PATH}/new`} filled={filled} endpoint={null} />
    </Layout>
  );
}
