import type { EventDetail } from '../../domain/event-detail.ts';
import { spanInWords } from '../../lib/times.ts';
import type { AttemptDetails } from '../../store/emails/message-details.ts';
import { NumberCell, Table, TimeCell, Section } from '../elements.tsx';
import { type Context, type Html } from '../page.ts';

/** Times are relative to the acceptance. */
export function Timeline({ events }: { events: readonly TimelineEvent[] }): Html {
  const first = events[0]?.created_at ?? '';
  return (
    <Section title="Timeline">
      <Table caption="Timeline" columns={['What', 'When', 'After', 'Recipient']}>
        {events.map(({ type, created_at: at, recipient, detail }) => (
          <tr>
            <th scope="row" safe>
              {type.replace(/^\w+\./, '').replaceAll('_', ' ') + (detail?.machine ? ' (automatic)' : '')}
            </th>
            <TimeCell at={at} />
            <NumberCell text={at === first ? '–' : spanInWords(Date.parse(at) - Date.parse(first))} />
            <td safe>{recipient ?? ''}</td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

interface TimelineEvent {
  readonly type: string;
  readonly created_at: string;
  readonly recipient?: string | null;
  readonly detail?: EventDetail | null;
}

const OUTCOMES: Readonly<Record<NonNullable<AttemptDetails['outcome']>, string>> = {
  sent: 'taken',
  refused: 'refused for good',
  again: 'not taken, to be tried again',
  account: 'not taken, because of the account at the provider',
  unknown: 'not known; the provider is asked',
  lost: 'never arrived there, by its own word',
  risked: 'not known, and sent again',
};

export function Attempts({ attempts }: { attempts: readonly AttemptDetails[] }): Html {
  return (
    <Section title="Attempts">
      {attempts.length === 0 ? (
        <p class="muted">No provider has been asked to send it yet.</p>
      ) : (
        <Table caption="Attempts" columns={['No.', 'Provider', 'Started', 'Took', 'Outcome', 'Reply of the provider']}>
          {attempts.map(({ n, provider, started_at: start, ended_at: end, outcome, detail, code }) => (
            <tr>
              <td>{n}</td>
              <td safe>{provider}</td>
              <TimeCell at={start} />
              <NumberCell text={end === null ? '–' : spanInWords(Date.parse(end) - Date.parse(start))} />
              <td safe>{outcome === null ? 'under way, or its end was not seen' : OUTCOMES[outcome]}</td>
              <td class="sub" safe>
                {[code, detail].filter((part) => part !== null).join(': ')}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

export function Workflow({ context, id }: { context: Context; id: string }): Html {
  const { temporalUi: ui } = context.deps;
  if (ui === undefined) return <code safe>{id}</code>;
  const path = `namespaces/${encodeURIComponent(ui.namespace)}/workflows/${encodeURIComponent(id)}`;
  return (
    <a href={`${ui.url}/${path}`} rel="noreferrer">
      <code safe>{id}</code>
    </a>
  );
}
