import { Type } from 'typebox';
import { type EndpointStatus, FAILING_DAYS } from '../../domain/webhooks.ts';
import {
  editEndpoint,
  removeEndpoint,
  requireEndpoint,
  revealSecret,
  rotateEndpoint,
  testEndpoint,
} from '../../accounts/webhooks.ts';
import { reportEndpoint } from '../../intake/account-notices.ts';
import type { Delivery } from '../../store/webhooks/deliveries.ts';
import { type DeliveryHealth, HEALTH_SAMPLE, readDeliveryHealth } from '../../store/webhooks/delivery-search.ts';
import type { Endpoint } from '../../store/webhooks/endpoints.ts';
import { act, buttonAction } from '../act.ts';
import { Facts, Id, Section, StatusBadge, Text, Time } from '../elements.tsx';
import { BLANK, confirm, Form } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import {
  action,
  type Context,
  type FormState,
  type Html,
  idOf,
  type Page,
  page,
  type PageRow,
  Redirect,
  Reply,
} from '../page.ts';
import { Deliveries, DeliveryQuery, readDeliveryFilters } from './delivery-list.tsx';
import {
  CRUMBS,
  crumbsTo,
  EndpointFields,
  endpointForm,
  endpointDepsOf,
  nameOf,
  PATH,
  secretPage,
  stateOf,
  successRate,
} from './webhook-form.tsx';

const show = page(DeliveryQuery, async (context) => {
  const endpoint = await requireEndpoint(context.pool, context.organization.id, idOf(context));
  const health = (await readDeliveryHealth(context.pool, [endpoint.id])).get(endpoint.id);
  const formState = readDeliveryFilters(context);
  const shown = (
    <Layout context={context} title={nameOf(endpoint)} crumbs={CRUMBS} actions={actions(context, endpoint)}>
      <div id="state">
        <EndpointNotice context={context} endpoint={endpoint} pending={health?.pending ?? 0} />
        <EndpointFacts endpoint={endpoint} health={health} />
      </div>
      <Deliveries context={context} endpoint={endpoint} formState={formState} />
      {context.role === 'owner' && ownerSection(context, endpoint)}
    </Layout>
  );
  return Object.keys(formState.problems).length === 0 ? shown : new Reply(shown, { status: 422 });
});

const showEdit = page(Type.Object({}), (context) => editPage(context, BLANK));

const edit = action(EndpointFields, {
  renderForm: editPage,
  run: (context, { url, description = '', events = [] }) =>
    act(context, {
      action: 'webhooks.update',
      run: async () => {
        const { pool, deps, organization, user } = context;
        const former = await requireEndpoint(pool, organization.id, idOf(context));
        const change = { url, description, events };
        const endpoint = await editEndpoint(endpointDepsOf(context), organization.id, former.id, change);
        if (endpoint.url !== former.url) await reportEndpoint(deps, organization.id, endpoint, user.email);
      },
      target: idOf(context),
      detail: { url },
      next: endpointPath(context),
      flash: 'Endpoint updated.',
    }),
});

const enable = statusAction('enabled', 'Endpoint enabled. It receives new events, and deliveries that were waiting.');
const disable = statusAction('disabled', 'Endpoint disabled.');

const rotate = buttonAction<Endpoint & { secret: string }>((context) => ({
  action: 'webhooks.rotate-secret',
  run: () => rotateEndpoint(endpointDepsOf(context), context.organization.id, idOf(context)),
  next: (endpoint) => secretPage(context, endpoint, 'The previous secret also signs for 24 hours.'),
}));

/** A POST action, so that no link opens the secret. */
const reveal = buttonAction<Endpoint & { secret: string }>((context) => ({
  action: 'webhooks.reveal-secret',
  run: () => revealSecret(endpointDepsOf(context), context.organization.id, idOf(context)),
  next: (endpoint) => secretPage(context, endpoint, 'This secret verifies the deliveries of the endpoint.'),
}));

const test = buttonAction<Delivery>((context) => ({
  action: 'webhooks.test',
  run: () => testEndpoint(endpointDepsOf(context), context.organization.id, idOf(context)),
  next: ({ id }) => new Redirect(`${endpointPath(context)}/deliveries/${id}`, { flash: 'Test event queued.' }),
}));

const remove = buttonAction((context) => ({
  action: 'webhooks.delete',
  run: () => removeEndpoint(endpointDepsOf(context), context.organization.id, idOf(context)),
  next: PATH,
  flash: 'Endpoint deleted.',
}));

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id`, 'viewer', show],
  ['GET', `${PATH}/:id/edit`, 'owner', showEdit],
  ['POST', `${PATH}/:id/edit`, 'owner', edit],
  ['POST', `${PATH}/:id/enable`, 'owner', enable],
  ['POST', `${PATH}/:id/disable`, 'owner', disable],
  ['POST', `${PATH}/:id/rotate-secret`, 'owner', rotate],
  ['POST', `${PATH}/:id/secret`, 'owner', reveal],
  ['POST', `${PATH}/:id/test`, 'member', test],
  ['POST', `${PATH}/:id/delete`, 'owner', remove],
];

function endpointPath(context: Context): string {
  return `${PATH}/${idOf(context)}`;
}

function statusAction(status: EndpointStatus, flash: string): Page<'members'> {
  return buttonAction((context) => ({
    action: 'webhooks.update',
    run: () => editEndpoint(endpointDepsOf(context), context.organization.id, idOf(context), { status }),
    detail: { status },
    next: endpointPath(context),
    flash,
  }));
}

async function editPage(context: Context, formState: FormState): Promise<Html> {
  const endpoint = await requireEndpoint(context.pool, context.organization.id, idOf(context));
  return (
    <Layout context={context} title="Edit endpoint" crumbs={crumbsTo(endpoint)}>
      {endpointForm(context, `${PATH}/${endpoint.id}/edit`, formState, endpoint)}
    </Layout>
  );
}

function actions(context: Context, { id, status }: Endpoint): Html {
  return (
    <>
      {context.role !== 'viewer' && status === 'enabled' && (
        <Form visit={context} action={`${PATH}/${id}/test`}>
          <button>Send test event</button>
        </Form>
      )}
      {context.role === 'owner' && (
        <a class="button" href={`${PATH}/${id}/edit`}>
          Edit
        </a>
      )}
    </>
  );
}

interface NoticeProps {
  readonly context: Context;
  readonly endpoint: Endpoint;
  /** The number of pending deliveries. */
  readonly pending: number;
}

/** The problem of an endpoint, if it has one. */
function EndpointNotice({ context, endpoint, pending }: NoticeProps): Html {
  const { status, disabled_reason: reason, disabled_at: disabledAt, failing_since: failing } = endpoint;
  if (status === 'enabled') {
    if (failing === null) return '';
    return (
      <p class="notice warning" role="status">
        Every delivery has failed since <Time at={failing} />. The endpoint will be disabled after{' '}
        {`${FAILING_DAYS} days`}.
      </p>
    );
  }
  return (
    <div class="notice bad remedy" role="status">
      <p>
        {reason === null ? (
          'This endpoint is disabled. '
        ) : (
          <>
            Sendwright disabled this endpoint
            {disabledAt !== null && (
              <>
                {' '}
                on <Time at={disabledAt} />
              </>
            )}
            : <strong safe>{reason}</strong>.{' '}
          </>
        )}
        Events that happen while it is disabled are not delivered later.
        {pending > 0 && (
          <Text
            text={` ${countOf(pending)} from before ${pending === 1 ? 'is' : 'are'} waiting and will be sent when you enable it.`}
          />
        )}
      </p>
      {context.role === 'owner' && (
        <Form visit={context} action={`${PATH}/${endpoint.id}/enable`}>
          <button class="primary">Enable</button>
        </Form>
      )}
    </div>
  );
}

function countOf(pending: number): string {
  if (pending === 1) return 'One delivery';
  return `${pending > HEALTH_SAMPLE ? `More than ${HEALTH_SAMPLE}` : pending} deliveries`;
}

function EndpointFacts({ endpoint, health }: { endpoint: Endpoint; health: DeliveryHealth | undefined }): Html {
  const { id, url, events, created_at: created } = endpoint;
  return (
    <Facts
      facts={[
        ['Status', <StatusBadge status={stateOf(endpoint)} />],
        ['Succeeded in the last 24 hours', <Text text={successRate(health)} />],
        ['URL', <Text text={url} />],
        ['Events', <Text text={events.length === 0 ? 'all' : events.join(', ')} />],
        ['Created', <Time at={created} />],
        ['ID', <Id id={id} />],
      ]}
    />
  );
}

function ownerSection(context: Context, { id, status }: Endpoint): Html {
  return (
    <Section title="Manage endpoint">
      <div class="row">
        {confirm(context, 'Reveal secret', {
          action: `${PATH}/${id}/secret`,
          id: 'reveal',
          question:
            'Show the signing secret? Whoever knows it can forge deliveries. The audit log records that you saw it.',
        })}
        {confirm(context, 'Rotate secret', {
          action: `${PATH}/${id}/rotate-secret`,
          id: 'rotate',
          question: 'Create a new signing secret? The old one also signs for 24 hours.',
        })}
        {status === 'enabled' &&
          confirm(context, 'Disable', {
            action: `${PATH}/${id}/disable`,
            id: 'disable',
            question: 'Disable this endpoint? Events that happen until you enable it again are not delivered later.',
          })}
        {confirm(context, 'Delete', {
          action: `${PATH}/${id}/delete`,
          id: 'delete',
          question: 'Delete this endpoint and its deliveries? Pending ones are not sent. This cannot be undone.',
        })}
      </div>
    </Section>
  );
}
