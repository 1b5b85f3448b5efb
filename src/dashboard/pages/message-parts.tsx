import { BOUNCE_REASONS_IN_WORDS } from '../../domain/bounces/reasons.ts';
import type { EmailStatus } from '../../domain/email/email.ts';
import type { MessageStatus } from '../../domain/messages/message.ts';
import { formatDuration } from '../../lib/times.ts';
import type { AttemptDetails, TimelineEntry } from '../../store/emails/message-details.ts';
import { inWords, NumberCell, Section, Table, Text, Time, TimeCell, toneOf } from '../elements.tsx';
import { type Context, type Html } from '../page.ts';
import { formatNumber } from '../../lib/text.ts';

/** Number of entries shown at each end of a long timeline. */
const SHOWN_AT_END = 100;

/** Returns a subject as it is shown. */
export function subjectText(subject: string): string {
  return subject.trim() === '' ? '(no subject)' : subject;
}

/** The entries of a timeline, oldest first. Durations are relative to the acceptance. */
export function Timeline({ entries }: { entries: readonly TimelineEntry[] }): Html {
  const first = entries[0]?.created_at ?? '';
  const hidden = Math.max(0, entries.length - 2 * SHOWN_AT_END);
  const shown = (some: readonly TimelineEntry[]) => some.map((entry) => <Entry entry={entry} first={first} />);
  return (
    <Section title="Timeline">
      <ol class="timeline">
        {shown(hidden === 0 ? entries : entries.slice(0, SHOWN_AT_END))}
        {hidden > 0 && (
          <li class="ended">
            <Text text={hidden === 1 ? '1 more event' : `${formatNumber(hidden)} more events`} />
          </li>
        )}
        {hidden > 0 && shown(entries.slice(-SHOWN_AT_END))}
      </ol>
    </Section>
  );
}

function Entry({ entry, first }: { entry: TimelineEntry; first: string }): Html {
  const { type, created_at: at, recipient, detail } = entry;
  const status = type.slice(type.indexOf('.') + 1);
  return (
    <li class={toneOf(status)}>
      <p class="row">
        <strong safe>{titleOf(status) + (detail?.machine ? ' (automatic)' : '')}</strong>
        {recipient !== null && <Text text={recipient} />}
        <span class="sub">
          <Time at={at} />
          {at !== first && <Text text={` · after ${formatDuration(Date.parse(at) - Date.parse(first))}`} />}
        </span>
      </p>
      <EntryDetail entry={entry} />
    </li>
  );
}

function titleOf(status: string): string {
  if (status === 'complained') return 'Marked as spam';
  return status.slice(0, 1).toUpperCase() + inWords(status.slice(1));
}

/** Further fields of an entry, besides its type. */
function EntryDetail({ entry: { detail } }: { entry: TimelineEntry }): Html {
  if (detail === null) return '';
  const { link, error, bounce_reason: reason, error_code: code, previous, scheduled_at: scheduledAt } = detail;
  return (
    <>
      {link !== undefined && (
        <p>
          <code safe>{link}</code>
        </p>
      )}
      {previous !== undefined && scheduledAt !== undefined && (
        <p>
          From <Time at={previous} /> to <Time at={scheduledAt} />
        </p>
      )}
      {reason !== undefined && <p safe>{`${inWords(reason)}: ${BOUNCE_REASONS_IN_WORDS[reason].meaning}`}</p>}
      {error !== undefined && (
        <p>
          <code safe>{code === undefined ? error : `${error} (${code})`}</code>
        </p>
      )}
    </>
  );
}

const OUTCOMES: Readonly<Record<NonNullable<AttemptDetails['outcome']>, string>> = {
  sent: 'accepted',
  refused: 'rejected',
  again: 'temporary failure, retrying',
  account: 'refused because of the account at the provider, retrying',
  unknown: 'no clear answer, checking',
  lost: 'not received (confirmed by the provider)',
  risked: 'no clear answer, sent again',
  given_up: 'no clear answer, gave up on its copies',
};

/** The last attempt of a message that failed. */
const LAST_OUTCOMES: typeof OUTCOMES = {
  ...OUTCOMES,
  again: 'temporary failure, gave up',
  account: 'refused because of the account at the provider, gave up',
  unknown: 'no clear answer, gave up',
};

export function Attempts(props: { attempts: readonly AttemptDetails[]; status: EmailStatus | MessageStatus }): Html {
  const { attempts, status } = props;
  const outcomeOf = ({ outcome }: AttemptDetails, isLast: boolean): string => {
    if (outcome === null) return 'in progress, or its end was not recorded';
    return (isLast && status === 'failed' ? LAST_OUTCOMES : OUTCOMES)[outcome];
  };
  return (
    <Section title="Attempts">
      {attempts.length === 0 ? (
        <p class="muted">{status === 'queued' || status === 'scheduled' ? 'Not sent yet.' : 'No attempt was made.'}</p>
      ) : (
        <Table
          layout="cards"
          caption="Attempts"
          columns={['No.', 'Provider', 'Started', ['Took', 'number'], 'Outcome', 'Provider response']}
        >
          {attempts.map((attempt, index) => {
            const { n, provider, started_at: start, ended_at: end, detail, code } = attempt;
            return (
              <tr>
                <td>{n}</td>
                <td safe>{provider}</td>
                <TimeCell at={start} />
                <NumberCell text={end === null ? '–' : formatDuration(Date.parse(end) - Date.parse(start))} />
                <td safe>{outcomeOf(attempt, index === attempts.length - 1)}</td>
                <td class="sub" safe>
                  {[code, detail].filter((part) => part !== null).join(': ')}
                </td>
              </tr>
            );
          })}
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
