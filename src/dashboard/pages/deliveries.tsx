import { Type } from 'typebox';
import { DELIVERY_STATUSES } from '../../domain/webhooks.ts';
import { replayMany, replayOne, requireDelivery, requireEndpoint } from '../../accounts/webhooks.ts';
import type { Delivery, DeliveryAttempt } from '../../store/webhooks/deliveries.ts';
import { act, buttonAction } from '../act.ts';
import { Command, Copy, Facts, StatusBadge, Table, Text, Time, TimeCell, Section } from '../elements.tsx';
import { BLANK, field, Form, FormProblem, optionsOf, select } from '../form-elements.tsx';
import { utcInstant } from '../instants.ts';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, idOf, page, type PageRow, Redirect } from '../page.ts';
import { crumbsTo, intakeOf, PATH } from './webhook-form.tsx';

/** A delivery is polled more often when its next attempt is due within this time. */
const SOON_MS = 60_000;

const show = page(Type.Object({}), async (context) => {
  const { pool, organization } = context;
  const found = await requireDelivery(pool, organization.id, idOf(context), deliveryIdOf(context));
  const { endpoint, delivery, payload, attempts } = found;
  const again = context.role !== 'viewer' && endpoint.status === 'enabled' && (
    <Form visit={context} action={`${pathOf(context)}/replay`}>
      <button>Send it again</button>
    </Form>
  );
  return (
    <Layout context={context} title={delivery.type} crumbs={crumbsTo(endpoint)} actions={again}>
      {progress(context, delivery, attempts)}
      <Section title="Payload">
        <Command text={JSON.stringify(payload, null, 2)} />
      </Section>
    </Layout>
  );
});

const replay = buttonAction((context) => ({
  action: 'webhooks.deliveries.replay',
  run: () => replayOne(intakeOf(context), context.organization.id, idOf(context), deliveryIdOf(context)),
  target: deliveryIdOf(context),
  next: pathOf(context),
  flash: 'It is on its way again.',
}));

const showPeriod = page(Type.Object({}), (context) => periodPage(context, BLANK));

const Period = Type.Object({
  since: Type.String(),
  until: Type.Optional(Type.String()),
  status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
});

const replayPeriod = action(Period, {
  again: periodPage,
  run: (context, { since, until, status = null }) => {
    const id = idOf(context);
    const period = {
      since: utcInstant(since, 'since'),
      until: until === undefined ? null : utcInstant(until, 'until'),
      status,
    };
    return act(context, {
      action: 'webhooks.replay',
      run: () => replayMany(intakeOf(context), context.organization.id, id, period),
      target: id,
      detail: (replayed) => ({ ...period, replayed }),
      next: (replayed) => new Redirect(`${PATH}/${id}`, { flash: replayedMessage(replayed) }),
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id/deliveries/:deliveryId`, 'viewer', show],
  ['POST', `${PATH}/:id/deliveries/:deliveryId/replay`, 'member', replay],
  ['GET', `${PATH}/:id/replay`, 'member', showPeriod],
  ['POST', `${PATH}/:id/replay`, 'member', replayPeriod],
];

function deliveryIdOf({ params }: Context): string {
  return params['deliveryId'] ?? '';
}

function pathOf(context: Context): string {
  return `${PATH}/${idOf(context)}/deliveries/${deliveryIdOf(context)}`;
}

function replayedMessage(count: number): string {
  if (count === 0) return 'There was no such delivery.';
  return count === 1 ? 'One delivery is on its way again.' : `${count} deliveries are on their way again.`;
}

/** The state of a delivery and its attempts; refreshes itself while it is pending. */
function progress(context: Context, delivery: Delivery, attempts: readonly DeliveryAttempt[]): Html {
  const { id, event_id: eventId, status, created_at: at, next_attempt_at: next } = delivery;
  const isSoon = next !== null && Date.parse(next) < Date.now() + SOON_MS;
  const live = {
    'hx-get': pathOf(context),
    'hx-trigger': isSoon ? 'every 2s' : 'every 30s',
    'hx-select': '#progress',
    'hx-swap': 'outerHTML',
  };
  return (
    <div id="progress" {...(status === 'pending' && live)}>
      <Facts
        facts={[
          ['Status', <StatusBadge status={status} />],
          ['Happened', <Time at={at} />],
          ['Next attempt', <Time at={next} />],
          ['Event (webhook-id)', <Copy value={eventId} />],
          ['Delivery', <Copy value={id} />],
        ]}
      />
      <Section title="Tries">
        {attempts.length === 0 ? (
          <p class="muted">It was not tried yet.</p>
        ) : (
          <Table caption="Tries, oldest first" columns={['At', 'Answer', 'Took', 'What came back']}>
            {attempts.map((attempt) => (
              <AttemptRow attempt={attempt} />
            ))}
          </Table>
        )}
      </Section>
    </div>
  );
}

function AttemptRow({ attempt }: { attempt: DeliveryAttempt }): Html {
  const { at, status_code: code, duration_ms: duration, response, error } = attempt;
  return (
    <tr>
      <TimeCell at={at} />
      <td>{code === null ? <span class="muted">none</span> : <Text text={String(code)} />}</td>
      <td safe>{`${duration.toLocaleString('en')} ms`}</td>
      <td>
        {error !== null && <Text text={error} />}
        {response !== null && response !== '' && (
          <details>
            <summary>Body</summary>
            <pre tabindex="0" safe>
              {response}
            </pre>
          </details>
        )}
      </td>
    </tr>
  );
}

async function periodPage(context: Context, filled: Filled): Promise<Html> {
  const endpoint = await requireEndpoint(context.pool, context.organization.id, idOf(context));
  return (
    <Layout context={context} title="Send a period again" crumbs={crumbsTo(endpoint)}>
      <Form visit={context} action={`${PATH}/${endpoint.id}/replay`} class="card">
        <FormProblem filled={filled} />
        <p>Deliveries of this time are sent again, oldest first, with the same ids and bodies.</p>
        {field(filled, 'since', 'From (UTC)', { type: 'datetime-local', required: true })}
        {field(filled, 'until', 'To (UTC)', { type: 'datetime-local', hint: 'Until now when left empty.' })}
        {select(filled, 'status', 'Status', optionsOf(DELIVERY_STATUSES), 'failed')}
        <button class="primary">Send again</button>
      </Form>
    </Layout>
  );
}
