import { type Static, Type } from 'typebox';
import { EVENT_TYPES } from '../../domain/event-types.ts';
import { DELIVERY_STATUSES } from '../../domain/webhooks.ts';
import {
  type DeliveryFilters,
  type FoundDelivery,
  RESPONSES,
  searchDeliveries,
} from '../../store/webhooks/delivery-search.ts';
import type { Endpoint } from '../../store/webhooks/endpoints.ts';
import { LinkHeading, NumberCell, Pager, Section, StatusCell, Table, Text, TimeCell } from '../elements.tsx';
import { formProblems } from '../errors.tsx';
import { field, Filters, optionsOf, select } from '../form-elements.tsx';
import { zonedInstant } from '../instants.ts';
import { Live } from '../live.tsx';
import { type Context, type FormState, type Html, zoneOf } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { PATH } from './webhook-form.tsx';
import { formatNumber } from '../../lib/text.ts';

export const DeliveryQuery = Type.Object({
  status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
  type: Type.Optional(Type.Enum([...EVENT_TYPES])),
  response: Type.Optional(Type.Enum([...RESPONSES])),
  since: Type.Optional(Type.String()),
  until: Type.Optional(Type.String()),
  message: Type.Optional(Type.String({ maxLength: 100, 'x-rule': 'one-line' })),
  cursor: Type.Optional(Type.String()),
});

type Query = Static<typeof DeliveryQuery>;

/** Returns the filters of a request, with the problems of its fields. */
export function readDeliveryFilters(context: Context<Query>): FormState & { filters: DeliveryFilters } {
  const { query, input } = context;
  const problems = { ...context.problems };
  const instant = (name: 'since' | 'until'): string | null => {
    try {
      return query[name] === undefined ? null : zonedInstant(query[name], zoneOf(context), name);
    } catch (error) {
      const refused = formProblems(error);
      if (!refused) throw error;
      Object.assign(problems, refused.problems);
      return null;
    }
  };
  const { status = null, type = null, response = null, message } = query;
  const period = { since: instant('since'), until: instant('until') };
  return { input, problems, filters: { status, type, response, ...period, messageId: message?.trim() || null } };
}

interface DeliveriesProps {
  readonly context: Context<Query>;
  readonly endpoint: Endpoint;
  readonly formState: ReturnType<typeof readDeliveryFilters>;
}

/** The deliveries of an endpoint with their filters. Lists none if a filter is invalid. */
export async function Deliveries({ context, endpoint, formState }: DeliveriesProps): Promise<string> {
  const { query, input, role } = context;
  const isValid = Object.keys(formState.problems).length === 0;
  const { rows, next } = isValid
    ? await searchDeliveries(context.pool, endpoint.id, formState.filters, parseCursor(query.cursor), ROWS_PER_PAGE)
    : { rows: [], next: null };
  const isFiltered = Object.values(input).some((value) => value !== '');
  return (
    <Section title="Deliveries">
      <FilterFields context={context} formState={formState} />
      <Live
        path={context.url}
        shouldRefresh={isValid && query.cursor === undefined}
        // The button of a disabled endpoint must not be replaced while it is clicked.
        also={endpoint.status === 'enabled' ? '#state' : undefined}
      >
        {rows.length > 0 && (
          <Table
            layout="deliveries"
            caption="Deliveries, newest first"
            columns={[
              'Event',
              'Status',
              ['Code', 'number'],
              ['Attempts', 'number'],
              'Recipient',
              'Created',
              'Next attempt',
            ]}
          >
            {rows.map((delivery) => (
              <DeliveryRow endpoint={endpoint} delivery={delivery} />
            ))}
          </Table>
        )}
        {rows.length === 0 && isValid && (
          <p class="muted">
            {next !== null
              ? 'None of these deliveries match the filter; there are older ones.'
              : isFiltered
                ? 'No deliveries match this filter.'
                : 'No events yet.'}
          </p>
        )}
        <Pager visit={context} next={next} />
      </Live>
      {role !== 'viewer' && endpoint.status === 'enabled' && (
        <p class="after">
          <a href={`${PATH}/${endpoint.id}/replay`}>Replay deliveries</a>
        </p>
      )}
    </Section>
  );
}

function FilterFields({ context, formState }: { context: Context; formState: FormState }): Html {
  const responses = RESPONSES.map((each) => [each, each === 'none' ? 'No response' : each] as const);
  return (
    <Filters visit={context}>
      {select(formState, 'type', 'Event', optionsOf(EVENT_TYPES))}
      {select(formState, 'status', 'Status', optionsOf(DELIVERY_STATUSES))}
      {select(formState, 'response', 'Status code', [['', 'Any'], ...responses])}
      {field(formState, 'message', 'Message ID', { type: 'search', placeholder: 'em_…', autocomplete: 'off' })}
      {field(formState, 'since', `From (${zoneOf(context)})`, { type: 'datetime-local' })}
      {field(formState, 'until', `To (${zoneOf(context)})`, { type: 'datetime-local' })}
    </Filters>
  );
}

function DeliveryRow({ endpoint, delivery }: { endpoint: Endpoint; delivery: FoundDelivery }): Html {
  const { id, type, status, event_id: eventId, status_code: code, tries, message_id: messageId } = delivery;
  const recipient = delivery.recipient ?? messageId;
  const isPaused = endpoint.status === 'disabled' && status === 'pending';
  return (
    <tr>
      <LinkHeading
        href={`${PATH}/${endpoint.id}/deliveries/${id}`}
        id={`open-${id}`}
        text={type}
        title={`${type}, ${eventId}`}
      />
      <StatusCell status={status} />
      <NumberCell text={code === null ? '–' : String(code)} />
      <NumberCell text={formatNumber(tries)} />
      <td title={recipient ?? undefined}>
        {recipient === null ? (
          <span class="muted">–</span>
        ) : delivery.has_email ? (
          <a href={`/dashboard/emails/${messageId}`} safe>
            {recipient}
          </a>
        ) : (
          <Text text={recipient} />
        )}
      </td>
      <TimeCell at={delivery.created_at} short />
      {isPaused ? <td class="muted">when enabled</td> : <TimeCell at={delivery.next_attempt_at} short />}
    </tr>
  );
}
