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

/** The id of the element that shows the error of the whole message. */
export const RESPONSE_ID = 'response';

/** The text of a response, or a link to the same text in the element `RESPONSE_ID`. @param above the text of that element */
export function Response({ text, above }: { text: string; above: string | null }): Html {
  return text === above ? <a href={`#${RESPONSE_ID}`}>see the response above</a> : <Text text={text} />;
}

interface TimelineProps {
  readonly entries: readonly TimelineEntry[];
  /** The error of the whole message, which the page shows in the element `RESPONSE_ID`. */
  readonly above: string | null;
}

/** The entries of a timeline, oldest first. Durations are relative to the acceptance. */
export function Timeline({ entries, above }: TimelineProps): Html {
  const first = entries[0]?.created_at ?? '';
  const hidden = Math.max(0, entries.length - 2 * SHOWN_AT_END);
  const shown = (some: readonly TimelineEntry[]) =>
    some.map((entry) => <Entry entry={entry} first={first} above={above} />);
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

interface EntryProps extends Pick<TimelineProps, 'above'> {
  readonly entry: TimelineEntry;
  readonly first: string;
}

function Entry({ entry, first, above }: EntryProps): Html {
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
      <EntryDetail entry={entry} above={above} />
    </li>
  );
}

function titleOf(status: string): string {
  if (status === 'complained') return 'Marked as spam';
  return status.slice(0, 1).toUpperCase() + inWords(status.slice(1));
}

/** Further fields of an entry, besides its type. */
function EntryDetail({ entry: { detail }, above }: Omit<EntryProps, 'first'>): Html {
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
      {error !== undefined && error === above ? (
        <p>
          {reason !== undefined && <Text text={`${inWords(reason)}: `} />}
          <Response text={error} above={above} />
        </p>
      ) : (
        <>
          {reason !== undefined && <p safe>{`${inWords(reason)}: ${BOUNCE_REASONS_IN_WORDS[reason].meaning}`}</p>}
          {error !== undefined && (
            <p>
              <code safe>{code === undefined ? error : `${error} (${code})`}</code>
            </p>
          )}
        </>
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

interface AttemptsProps extends Pick<TimelineProps, 'above'> {
  readonly attempts: readonly AttemptDetails[];
  readonly status: EmailStatus | MessageStatus;
}

export function Attempts({ attempts, status, above }: AttemptsProps): Html {
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
                <td class="sub">
                  {code !== null && <Text text={detail === null ? code : `${code}: `} />}
                  {detail !== null && <Response text={detail} above={above} />}
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
