import { EMAIL_STATUSES, type EmailStatus } from '../domain/email/email.ts';
import type { EmailHours } from '../store/emails/hours.ts';
import { NumberCell, StatusCell, Table, Time } from './elements.tsx';
import type { Html } from './page.ts';

type Counts = Partial<Record<EmailStatus, number>>;

/** Groups of statuses, from the bottom up: thirteen colors could not be distinguished. */
const SERIES: readonly (readonly [name: string, tone: string, statuses: readonly EmailStatus[]])[] = [
  ['delivered, opened or clicked', 'good', ['delivered', 'opened', 'clicked']],
  ['sent', 'moving', ['sent']],
  ['waiting', 'waiting', ['queued', 'scheduled']],
  ['delayed', 'warning', ['delivery_delayed']],
  ['bounced, complained, rejected or failed', 'bad', ['bounced', 'complained', 'rejected', 'failed']],
  ['canceled or suppressed', 'ended', ['canceled', 'suppressed']],
];

interface MailChartProps {
  readonly statuses: EmailHours['statuses'];
  /** Unix milliseconds of the first and last bar; `step` is the length of a bar in milliseconds. */
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

/** Emails by acceptance time and current status, as stacked bars and as a table. */
export function MailChart({ statuses, first, last, step }: MailChartProps): Html {
  const times: number[] = [];
  for (let at = first; at <= last; at += step) times.push(at);
  const counts = times.map((at): Counts => statuses.get(new Date(at).toISOString()) ?? {});
  const series = SERIES.map(([name, tone, members]) => ({
    name,
    tone,
    values: counts.map((each) => members.reduce((sum, status) => sum + (each[status] ?? 0), 0)),
  }));
  const data = { at: times.map((at) => at / 1_000), step: step / 1_000, series };
  const unit = step === 86_400_000 ? 'day' : 'hour';
  return (
    <>
      <figure class="chart" data-chart={JSON.stringify(data)}>
        <ul class="legend">
          {SERIES.map(([name, tone]) => (
            <li class={`series-${tone}`}>
              <span safe>{name}</span>
            </li>
          ))}
        </ul>
        <div
          class="plot"
          role="img"
          aria-label={`Emails per ${unit} by status; the same numbers are in the table below`}
        />
        <p class="reading" aria-hidden="true" />
      </figure>
      <details class="data">
        <summary safe>{`These numbers as a table, by ${unit}`}</summary>
        <CountTable times={times} counts={counts} />
      </details>
    </>
  );
}

/** Omits hours without email and statuses that do not occur. */
function CountTable({ times, counts }: { times: readonly number[]; counts: readonly Counts[] }): Html {
  const statuses = EMAIL_STATUSES.filter((status) => counts.some((each) => (each[status] ?? 0) > 0));
  const busy = times.map((at, index) => ({ at, each: counts[index] ?? {} })).filter(({ each }) => sumOf(each) > 0);
  return (
    <Table
      caption="Emails by time of acceptance and status"
      columns={['From', 'Emails', ...statuses.map((status) => status.replaceAll('_', ' '))]}
    >
      {busy.reverse().map(({ at, each }) => (
        <tr>
          <th scope="row">
            <Time at={new Date(at).toISOString()} />
          </th>
          <td class="number">{sumOf(each)}</td>
          {statuses.map((status) => (
            <td class="number">{each[status] ?? 0}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

export function StatusTotals({ statuses }: { statuses: EmailHours['statuses'] }): Html {
  const sums: Counts = {};
  for (const each of statuses.values()) {
    for (const status of EMAIL_STATUSES) sums[status] = (sums[status] ?? 0) + (each[status] ?? 0);
  }
  const total = sumOf(sums);
  return (
    <Table caption="Emails by status" columns={['Status', 'Emails', 'Share']}>
      {EMAIL_STATUSES.filter((status) => (sums[status] ?? 0) > 0).map((status) => (
        <tr>
          <StatusCell status={status} />
          <td class="number">
            <a
              href={`/dashboard/emails?status=${status}`}
              aria-label={`${(sums[status] ?? 0).toLocaleString('en')} ${status.replaceAll('_', ' ')}: show them`}
              safe
            >
              {(sums[status] ?? 0).toLocaleString('en')}
            </a>
          </td>
          <NumberCell text={partInWords(sums[status] ?? 0, total)} />
        </tr>
      ))}
    </Table>
  );
}

export function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** A percentage, with one decimal below 10. */
export function partInWords(part: number, total: number): string {
  const percent = (100 * part) / total;
  return `${percent >= 10 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
}
