import { Type } from 'typebox';
import { createEndpoint } from '../../accounts/webhooks.ts';
import { listEndpoints } from '../../store/webhooks/endpoints.ts';
import { act } from '../act.ts';
import { curl, Empty, LinkHeading, StatusBadge, Sub, TimeCell } from '../elements.tsx';
import { BLANK } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, page, type PageRow } from '../page.ts';
import { CRUMBS, EndpointFields, endpointForm, intakeOf, PATH, secretPage } from './webhook-form.tsx';

const EXAMPLE = { url: 'https://example.com/webhooks', events: ['email.delivered', 'email.bounced'] };

const list = listPage({
  title: 'Webhooks',
  caption: 'Endpoints, newest first',
  columns: ['Endpoint', 'Status', 'Events', 'Created'],
  add: { href: `${PATH}/new`, label: 'Add an endpoint' },
  read: ({ pool, organization }, place, limit) => listEndpoints(pool, organization.id, place, limit),
  row: ({ id, url, description, status, disabled_reason: reason, events, created_at: createdAt }) => (
    <tr>
      <LinkHeading href={`${PATH}/${id}`} text={description ?? url} sub={description === null ? null : url} />
      <td>
        <StatusBadge status={status} />
        {reason !== null && <Sub text={reason} />}
      </td>
      <td safe>{events.length === 0 ? 'all' : events.join(', ')}</td>
      <TimeCell at={createdAt} />
    </tr>
  ),
  empty: (context) => (
    <Empty title="No endpoint yet" command={curl(context, 'POST', '/v1/webhooks', EXAMPLE)}>
      <p>
        An endpoint is a URL of yours that receives events: deliveries, bounces, unsubscribes and more.
        {context.role !== 'owner' && ' Owners add them here.'}
      </p>
    </Empty>
  ),
});

const showNew = page(Type.Object({}), async (context) => newPage(context, BLANK));

const create = action(EndpointFields, {
  again: newPage,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.create',
      run: () => createEndpoint(intakeOf(context), context.organization.id, { url, description, events }),
      target: ({ id }) => id,
      detail: { url },
      next: (made) => secretPage(context, made, 'The endpoint gets what happens from now on.'),
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', create],
];

function newPage(context: Context, filled: Filled): Html {
  return (
    <Layout context={context} title="Add an endpoint" crumbs={CRUMBS}>
      {endpointForm(context, `${PATH}/new`, filled, null)}
    </Layout>
  );
}
