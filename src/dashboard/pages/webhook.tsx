import { Type } from 'typebox';
import { DELIVERY_STATUSES, type EndpointStatus } from '../../domain/webhooks.ts';
import {
  editEndpoint,
  removeEndpoint,
  requireEndpoint,
  rotateEndpoint,
  testEndpoint,
} from '../../accounts/webhooks.ts';
import { type Delivery, listDeliveries } from '../../store/webhooks/deliveries.ts';
import type { Endpoint } from '../../store/webhooks/endpoints.ts';
import { act, buttonAction } from '../act.ts';
import {
  Copy,
  Facts,
  LinkHeading,
  Pager,
  StatusBadge,
  StatusCell,
  Table,
  Text,
  Time,
  TimeCell,
  Section,
} from '../elements.tsx';
import { BLANK, confirm, Filters, Form, optionsOf, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import {
  action,
  type Context,
  type Filled,
  type Html,
  idOf,
  type Page,
  page,
  type PageRow,
  Redirect,
} from '../page.ts';
import { textToPlace } from '../places.ts';
import { cutPage } from '../../store/postgres/page.ts';
import { CRUMBS, crumbsTo, EndpointFields, endpointForm, intakeOf, nameOf, PATH, secretPage } from './webhook-form.tsx';

const DELIVERIES = 50;

const Listing = Type.Object({
  status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
  cursor: Type.Optional(Type.String()),
});

const show = page(Listing, async (context) => {
  const { pool, organization, query } = context;
  const endpoint = await requireEndpoint(pool, organization.id, idOf(context));
  const place = textToPlace(query.cursor);
  const found = await listDeliveries(pool, endpoint.id, query.status ?? null, place, DELIVERIES + 1);
  const { rows: deliveries, next } = cutPage(found, DELIVERIES);
  return (
    <Layout context={context} title={nameOf(endpoint)} crumbs={CRUMBS} actions={actions(context, endpoint)}>
      <EndpointFacts endpoint={endpoint} />
      {deliverySection(context, endpoint, deliveries)}
      <Pager visit={context} next={next} />
      {context.role === 'owner' && ownerSection(context, endpoint)}
    </Layout>
  );
});

const showEdit = page(Type.Object({}), (context) => editPage(context, BLANK));

const edit = action(EndpointFields, {
  again: editPage,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.update',
      run: () => editEndpoint(intakeOf(context), context.organization.id, idOf(context), { url, description, events }),
      target: idOf(context),
      detail: { url },
      next: pathOf(context),
      flash: 'The endpoint was changed.',
    }),
});

const enable = statusAction('enabled', 'The endpoint is enabled; it gets what happens from now on.');
const disable = statusAction('disabled', 'The endpoint is disabled; nothing goes there.');

const rotate = buttonAction<Endpoint & { secret: string }>((context) => ({
  action: 'webhooks.rotate-secret',
  run: () => rotateEndpoint(intakeOf(context), context.organization.id, idOf(context)),
  next: (endpoint) => secretPage(context, endpoint, 'For 24 hours the secret before it signs too.'),
}));

const test = buttonAction<Delivery>((context) => ({
  action: 'webhooks.test',
  run: () => testEndpoint(intakeOf(context), context.organization.id, idOf(context)),
  next: ({ id }) => new Redirect(`${pathOf(context)}/deliveries/${id}`, { flash: 'A test is on its way.' }),
}));

const remove = buttonAction((context) => ({
  action: 'webhooks.delete',
  run: () => removeEndpoint(intakeOf(context), context.organization.id, idOf(context)),
  next: PATH,
  flash: 'The endpoint was deleted.',
}));

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id`, 'viewer', show],
  ['GET', `${PATH}/:id/edit`, 'owner', showEdit],
  ['POST', `${PATH}/:id/edit`, 'owner', edit],
  ['POST', `${PATH}/:id/enable`, 'owner', enable],
  ['POST', `${PATH}/:id/disable`, 'owner', disable],
  ['POST', `${PATH}/:id/rotate-secret`, 'owner', rotate],
  ['POST', `${PATH}/:id/test`, 'member', test],
  ['POST', `${PATH}/:id/delete`, 'owner', remove],
];

function pathOf(context: Context): string {
  return `${PATH}/${idOf(context)}`;
}

function statusAction(status: EndpointStatus, flash: string): Page<'members'> {
  return buttonAction((context) => ({
    action: 'webhooks.update',
    run: () => editEndpoint(intakeOf(context), context.organization.id, idOf(context), { status }),
    detail: { status },
    next: pathOf(context),
    flash,
  }));
}

async function editPage(context: Context, filled: Filled): Promise<Html> {
  const endpoint = await requireEndpoint(context.pool, context.organization.id, idOf(context));
  return (
    <Layout context={context} title="Edit the endpoint" crumbs={crumbsTo(endpoint)}>
      {endpointForm(context, `${PATH}/${endpoint.id}/edit`, filled, endpoint)}
    </Layout>
  );
}

function actions(context: Context, { id, status }: Endpoint): Html {
  return (
    <>
      {context.role !== 'viewer' && status === 'enabled' && (
        <Form visit={context} action={`${PATH}/${id}/test`}>
          <button>Send a test</button>
        </Form>
      )}
      {context.role === 'owner' && (
        <>
          <a class="button" href={`${PATH}/${id}/edit`}>
            Edit
          </a>
          {status === 'disabled' && (
            <Form visit={context} action={`${PATH}/${id}/enable`}>
              <button class="primary">Enable</button>
            </Form>
          )}
        </>
      )}
    </>
  );
}

function EndpointFacts({ endpoint }: { endpoint: Endpoint }): Html {
  const { id, url, events, status, disabled_reason: reason, disabled_at: disabledAt } = endpoint;
  const { failing_since: failing, created_at: created } = endpoint;
  return (
    <>
      {status === 'disabled' && (
        <p class="notice bad" role="status">
          Nothing goes to this endpoint, and what happens meanwhile is not sent later.{' '}
          {reason !== null && (
            <>
              Sendwright disabled it{' '}
              {disabledAt !== null && (
                <>
                  at <Time at={disabledAt} />
                </>
              )}
              : <strong safe>{reason}</strong>
            </>
          )}
        </p>
      )}
      {status === 'enabled' && failing !== null && (
        <p class="notice warning" role="status">
          Nothing but failures since <Time at={failing} />. After five days of that the endpoint is disabled.
        </p>
      )}
      <Facts
        facts={[
          ['Status', <StatusBadge status={status} />],
          ['URL', <Text text={url} />],
          ['Events', <Text text={events.length === 0 ? 'all' : events.join(', ')} />],
          ['Created', <Time at={created} />],
          ['Id', <Copy value={id} />],
        ]}
      />
    </>
  );
}

function deliverySection(context: Context, endpoint: Endpoint, deliveries: readonly Delivery[]): Html {
  const isFiltered = Object.values(context.given).some((value) => value !== '');
  return (
    <Section title="Deliveries">
      <Filters visit={context}>{select(context, 'status', 'Status', optionsOf(DELIVERY_STATUSES))}</Filters>
      {deliveries.length === 0 ? (
        <p class="muted">{isFiltered ? 'No deliveries match this filter.' : 'No events yet.'}</p>
      ) : (
        <Table
          layout="deliveries"
          caption="Deliveries, newest first"
          columns={['Event', 'Status', 'Created', 'Next attempt']}
        >
          {deliveries.map(({ id, type, status, event_id: eventId, created_at: at, next_attempt_at: next }) => (
            <tr>
              <LinkHeading
                href={`${PATH}/${endpoint.id}/deliveries/${id}`}
                text={type}
                sub={eventId}
                title={`${type}, ${eventId}`}
              />
              <StatusCell status={status} />
              <TimeCell at={at} short />
              <TimeCell at={next} short />
            </tr>
          ))}
        </Table>
      )}
      {context.role !== 'viewer' && endpoint.status === 'enabled' && (
        <p class="after">
          <a href={`${PATH}/${endpoint.id}/replay`}>Send the deliveries of a period again</a>
        </p>
      )}
    </Section>
  );
}

function ownerSection(context: Context, { id, status }: Endpoint): Html {
  return (
    <Section title="Secret, pause and end">
      <div class="row">
        {confirm(context, 'Rotate the secret', {
          action: `${PATH}/${id}/rotate-secret`,
          id: 'rotate',
          question: 'There will be a new secret, shown once. For 24 hours the old one signs too.',
        })}
        {status === 'enabled' &&
          confirm(context, 'Disable', {
            action: `${PATH}/${id}/disable`,
            id: 'disable',
            question: 'Nothing will go there until it is enabled again. What happens meanwhile is not sent later.',
          })}
        {confirm(context, 'Delete', {
          action: `${PATH}/${id}/delete`,
          id: 'delete',
          question: 'Nothing will be sent there, and its deliveries are no longer shown.',
        })}
      </div>
    </Section>
  );
}
