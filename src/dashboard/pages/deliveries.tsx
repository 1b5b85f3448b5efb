import { Type } from 'typebox';
import { DELIVERY_STATUSES } from '../../domain/webhooks.ts';
import { replayMany, replayOne, requireDelivery, requireEndpoint } from '../../accounts/webhooks.ts';
import { emailExists } from '../../store/emails/message-details.ts';
import type { AttemptWithHeaders } from '../../store/webhooks/deliveries.ts';
import { act, buttonAction } from '../act.ts';
import { Command, Facts, Id, NumberCell, Section, StatusBadge, Table, Text, Time, TimeCell } from '../elements.tsx';
import { BLANK, field, Form, FormProblem, optionsOf, select } from '../form-elements.tsx';
import { valueOf } from '../forms.ts';
import { zonedInstant } from '../instants.ts';
import { Layout } from '../layout.tsx';
import {
  action,
  type Context,
  type FormState,
  type Html,
  idOf,
  page,
  type PageRow,
  Redirect,
  zoneOfForm,
} from '../page.ts';
import { crumbsTo, endpointDepsOf, PATH } from './webhook-form.tsx';
import { formatNumber } from '../../lib/text.ts';

/** The page refreshes more often if the next attempt is due within this time. */
const SOON_MS = 60_000;

const show = page(Type.Object({}), async (context) => {
  const { pool, organization } = context;
  const details = await requireDelivery(pool, organization.id, idOf(context), deliveryIdOf(context));
  const { endpoint, delivery, payload } = details;
  const message = await messageOf(context, payload);
  const again = context.role !== 'viewer' && endpoint.status === 'enabled' && (
    <Form visit={context} action={`${deliveryPath(context)}/replay`}>
      <button>Replay</button>
    </Form>
  );
  return (
    <Layout context={context} title={delivery.type} crumbs={crumbsTo(endpoint)} actions={again}>
      {progress(context, details, message)}
      <Section title="Payload">
        <Command text={JSON.stringify(payload, null, 2)} />
      </Section>
    </Layout>
  );
});

const replay = buttonAction((context) => ({
  action: 'webhooks.deliveries.replay',
  run: () => replayOne(endpointDepsOf(context), context.organization.id, idOf(context), deliveryIdOf(context)),
  target: deliveryIdOf(context),
  next: deliveryPath(context),
  flash: 'Delivery queued again.',
}));

const showPeriod = page(Type.Object({}), (context) => periodPage(context, BLANK));

const Period = Type.Object({
  since: Type.String(),
  until: Type.Optional(Type.String()),
  time_zone: Type.Optional(Type.String()),
  status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
});

const replayPeriod = action(Period, {
  renderForm: periodPage,
  run: (context, { since, until, time_zone, status = null }) => {
    const id = idOf(context);
    const zone = zoneOfForm(context, time_zone);
    const period = {
      since: zonedInstant(since, zone, 'since'),
      until: until === undefined ? null : zonedInstant(until, zone, 'until'),
      status,
    };
    return act(context, {
      action: 'webhooks.replay',
      run: () => replayMany(endpointDepsOf(context), context.organization.id, id, period),
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
  ['POST', `${PATH}/:id/replay`, 'member', replayPeriod, 'expensive'],
];

function deliveryIdOf({ params }: Context): string {
  return params['deliveryId'] ?? '';
}

function deliveryPath(context: Context): string {
  return `${PATH}/${idOf(context)}/deliveries/${deliveryIdOf(context)}`;
}

function replayedMessage(count: number): string {
  if (count === 0) return 'No deliveries match.';
  return count === 1 ? 'One delivery was queued again.' : `${formatNumber(count)} deliveries were queued again.`;
}

type FoundDelivery = Awaited<ReturnType<typeof requireDelivery>>;

/** The state of a delivery and its attempts; refreshes itself while it is pending. */
function progress(
  context: Context,
  { endpoint, delivery, attempts }: FoundDelivery,
  message: MessageLink | undefined,
): Html {
  const { id, event_id: eventId, status, created_at: at, next_attempt_at: next } = delivery;
  const isPaused = endpoint.status === 'disabled' && status === 'pending';
  const isSoon = next !== null && Date.parse(next) < Date.now() + SOON_MS;
  const live = {
    'hx-get': deliveryPath(context),
    'hx-trigger': isSoon ? 'every 2s' : 'every 30s',
    'hx-select': '#progress',
    'hx-swap': 'outerHTML',
  };
  return (
    <div id="progress" {...(status === 'pending' && !isPaused && live)}>
      <Facts
        facts={[
          ['Status', <StatusBadge status={status} />],
          ['Created', <Time at={at} />],
          status === 'pending' && [
            'Next attempt',
            isPaused ? <Text text="when the endpoint is enabled" /> : <Time at={next} />,
          ],
          message !== undefined && [
            message.name,
            <a href={message.href} safe>
              {message.id}
            </a>,
          ],
          ['Event ID (webhook-id)', <Id id={eventId} />],
          ['Delivery ID', <Id id={id} />],
        ]}
      />
      <Section title="Attempts">
        {attempts.length === 0 ? (
          <p class="muted">Not attempted yet.</p>
        ) : (
          <Table
            layout="cards"
            caption="Latest attempts, oldest first"
            columns={['Time', 'Status code', ['Took', 'number'], 'Response', 'Request']}
          >
            {attempts.map((attempt) => (
              <AttemptRow attempt={attempt} />
            ))}
          </Table>
        )}
      </Section>
    </div>
  );
}

interface MessageLink {
  readonly name: string;
  readonly href: string;
  readonly id: string;
}

/** Returns the message that a webhook payload is about; undefined if it has no page. */
async function messageOf({ pool, organization }: Context, payload: unknown): Promise<MessageLink | undefined> {
  const { type = '', data = {} } = payload as { type?: string; data?: { emailId?: string; messageId?: string } };
  const { emailId } = data;
  if (emailId !== undefined) {
    // A payload outlives the record of its email.
    if (!(await emailExists(pool, organization.id, emailId))) return undefined;
    return { name: 'Email', href: `/dashboard/emails/${emailId}`, id: emailId };
  }
  const [channel = ''] = type.split('.');
  const name = { chatapp: 'WhatsApp message', sms: 'SMS' }[channel];
  // Inbound messages have no page.
  if (data.messageId === undefined || name === undefined || type.endsWith('.received')) return undefined;
  return { name, href: `/dashboard/${channel}/${data.messageId}`, id: data.messageId };
}

function AttemptRow({ attempt }: { attempt: AttemptWithHeaders }): Html {
  const { at, status_code: code, duration_ms: duration, response, error, request_headers: headers } = attempt;
  return (
    <tr>
      <TimeCell at={at} />
      <td>{code === null ? <span class="muted">no response</span> : <Text text={String(code)} />}</td>
      <NumberCell text={`${formatNumber(duration)} ms`} />
      <td>
        {error !== null && <Text text={error} />}
        {response !== null && response !== '' && <Disclosed summary="Body" text={response} />}
      </td>
      <td>
        {headers !== null && (
          <Disclosed
            summary="Headers"
            text={Object.entries(headers)
              .map((pair) => pair.join(': '))
              .join('\n')}
          />
        )}
      </td>
    </tr>
  );
}

function Disclosed({ summary, text }: { summary: string; text: string }): Html {
  return (
    <details>
      <summary safe>{summary}</summary>
      <pre tabindex="0" safe>
        {text}
      </pre>
    </details>
  );
}

async function periodPage(context: Context, formState: FormState): Promise<Html> {
  const endpoint = await requireEndpoint(context.pool, context.organization.id, idOf(context));
  const zone = zoneOfForm(context, valueOf(formState.input, 'time_zone'));
  return (
    <Layout context={context} title="Replay deliveries" crumbs={crumbsTo(endpoint)}>
      <Form visit={context} action={`${PATH}/${endpoint.id}/replay`} class="card">
        <FormProblem formState={formState} />
        <p>Deliveries created in this period are sent again, oldest first, with the same IDs and bodies.</p>
        <input type="hidden" name="time_zone" value={zone} />
        {field(formState, 'since', `From (${zone})`, { type: 'datetime-local', required: true })}
        {field(formState, 'until', `To (${zone})`, {
          type: 'datetime-local',
          hint: 'Leave empty to replay up to the present time.',
        })}
        {select(formState, 'status', 'Status', optionsOf(DELIVERY_STATUSES), 'failed')}
        <button class="primary">Replay deliveries</button>
      </Form>
    </Layout>
  );
}
