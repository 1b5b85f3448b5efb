import { Type } from 'typebox';
import { createEndpoint } from '../../accounts/webhooks.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { type Endpoint, listEndpoints } from '../../store/webhooks/endpoints.ts';
import { act } from '../act.ts';
import { curl, Empty, Pager, StatusBadge, Table, Time } from '../elements.tsx';
import { BLANK } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, page, type PageRow } from '../page.ts';
import { cutPage, textToPlace } from '../places.ts';
import { CRUMBS, EndpointFields, EndpointForm, intakeOf, nameOf, PATH, SecretPage } from './webhook-form.tsx';

const ENDPOINTS = 50;

const list = page(Type.Object({ cursor: Type.Optional(Type.String()) }), async (context) => {
  const { pool, organization, role } = context;
  const found = await listEndpoints(pool, organization.id, textToPlace(context.query.cursor), ENDPOINTS + 1);
  const { rows: endpoints, next } = cutPage(found, ENDPOINTS, (endpoint) => endpoint);
  const add = (
    <a class="button primary" href={`${PATH}/new`}>
      Add an endpoint
    </a>
  );
  return (
    <Layout context={context} title="Webhooks" {...(role === 'owner' && { actions: add })}>
      {endpoints.length === 0 ? (
        <NoEndpoint context={context} />
      ) : (
        <Table caption="Endpoints, newest first" columns={['Endpoint', 'Status', 'Events', 'Created']}>
          {endpoints.map((endpoint) => (
            <EndpointRow endpoint={endpoint} />
          ))}
        </Table>
      )}
      <Pager visit={context} next={next} />
    </Layout>
  );
});

const showNew = page(Type.Object({}), async (context) => <NewPage context={context} filled={BLANK} />);

const create = action(EndpointFields, {
  again: (context, filled) => <NewPage context={context} filled={filled} />,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.create',
      run: () =>
        withinLimit(context.pool, context.deps.limits.organization, 'endpoints', context.organization.id, (client) =>
          createEndpoint({ ...intakeOf(context), pool: client }, context.organization.id, { url, description, events }),
        ),
      target: ({ id }) => id,
      detail: { url },
      then: (made) => (
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
        An endpoint is a URL of yours that is told of what happens: what was delivered, what bounced, who unsubscribed.
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
        {description !== null && (
          <span class="sub" safe>
            {url}
          </span>
        )}
      </th>
      <td>
        <StatusBadge status={status} />
        {reason !== null && (
          <span class="sub" safe>
            {reason}
          </span>
        )}
      </td>
      <td safe>{events.length === 0 ? 'all' : events.join(', ')}</td>
      <td>
        <Time at={createdAt} />
      </td>
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
