import { type Counts, STATES } from '../domain/statistics.ts';
import { type Point, STEP_MS } from '../store/statistics/series.ts';
import { NumberCell, Table, Time } from './elements.tsx';
import type { Html } from './page.ts';
import { emailsPath, type Period } from './periods.ts';
import { formatNumber } from '../lib/text.ts';

/** The parts of a bar from the bottom up. Each part counts emails that the parts before it have not counted. */
const PARTS: readonly (readonly [name: string, tone: string, count: (counts: Counts) => number])[] = [
  ['delivered', 'good', ({ delivered }) => delivered],
  ['bounced, rejected or failed', 'bad', ({ bounced, rejected, failed }) => bounced + rejected + failed],
  ['canceled or suppressed', 'ended', ({ canceled, suppressed }) => canceled + suppressed],
  ['sent', 'moving', ({ sent, delivered, bounced }) => sent - delivered - bounced],
  ['waiting', 'waiting', ({ accepted }) => accepted],
];

/**
 * Counts an email that has reached several states only in the first matching part, so that a bar's height is its number of
 * emails.
 */
function partsOf(counts: Counts): number[] {
  let uncounted = counts.accepted;
  return PARTS.map(([, , count]) => {
    const part = Math.max(Math.min(count(counts), uncounted), 0);
    uncounted -= part;
    return part;
  });
}

const NONE = Object.fromEntries(STATES.map((state) => [state, 0])) as unknown as Counts;

interface MailChartProps {
  readonly points: readonly Point[];
  readonly period: Period;
  /** Filters that links to lists of emails also contain. */
  readonly filters?: Readonly<Record<string, string>>;
}

/** Emails by the hour or day of acceptance, as stacked bars and as a table. Bars link to the emails. */
export function MailChart({ points, period, filters = {} }: MailChartProps): Html {
  const byTime = new Map(points.map((point) => [point.at, point]));
  const bars: { at: number; counts: Counts }[] = [];
  for (let at = period.from; at < period.to; at += STEP_MS[period.step]) {
    bars.push({ at, counts: byTime.get(new Date(at).toISOString()) ?? NONE });
  }
  const top = roundUp(Math.max(...bars.map(({ counts }) => counts.accepted)));
  return (
    <>
      <figure class="chart">
        <ul class="legend">
          {PARTS.map(([name, tone]) => (
            <li class={`series-${tone}`}>
              <span safe>{name}</span>
            </li>
          ))}
        </ul>
        <div class="plot" aria-hidden="true">
          <div class="scale">
            {[top, top / 2, 0].map((value) => (
              <span safe>{formatNumber(value)}</span>
            ))}
          </div>
          <svg viewBox={`0 0 ${bars.length} ${top}`} preserveAspectRatio="none">
            {bars.map(({ at, counts }, index) => (
              <Bar index={index} top={top} at={at} counts={counts} period={period} filters={filters} />
            ))}
          </svg>
          <Axis bars={bars.map(({ at }) => at)} step={period.step} />
        </div>
      </figure>
      <details class="data">
        <summary safe>{`These numbers as a table, by ${period.step}`}</summary>
        <CountTable bars={bars} period={period} filters={filters} />
      </details>
    </>
  );
}

/** Rounds up to 2, 4, 10, 20, 40, 100 …, so that half of the scale is an integer too. */
function roundUp(highest: number): number {
  let unit = 1;
  for (;;) {
    for (const factor of [2, 4, 10]) if (factor * unit >= highest) return factor * unit;
    unit *= 10;
  }
}

interface BarProps extends Required<Pick<MailChartProps, 'period' | 'filters'>> {
  readonly index: number;
  readonly top: number;
  readonly at: number;
  readonly counts: Counts;
}

function Bar({ index, top, at, counts, period: { step }, filters }: BarProps): Html {
  const parts = partsOf(counts);
  const time = new Date(at).toISOString();
  const when = step === 'day' ? `${time.slice(0, 10)} (UTC)` : `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
  const words = PARTS.flatMap(([name], part) => (parts[part] ? `${formatNumber(parts[part] ?? 0)} ${name}` : []));
  let below = 0;
  return (
    // The table has the same links for the keyboard.
    <a href={emailsPath({ from: at, to: at + STEP_MS[step] }, filters)} tabindex="-1">
      <title safe>{`${when}: ${words.join(', ') || 'no email'}`}</title>
      <rect class="empty" x={index} y="0" width="1" height={top} />
      {parts.map((height, part) => {
        if (height === 0) return '';
        below += height;
        return (
          <rect
            class={`series-${PARTS[part]?.[1] ?? ''}`}
            x={index + 0.1}
            y={top - below}
            width="0.8"
            height={height}
          />
        );
      })}
    </a>
  );
}

/** Four or five times below the bars. Days are in UTC; a script converts hours to the reader's time zone. */
function Axis({ bars, step }: { bars: readonly number[]; step: Period['step'] }): Html {
  const labels = bars.length % 5 === 0 ? 5 : 4;
  const shown = Array.from({ length: labels }, (_, label) => bars[Math.round((label * bars.length) / labels)] ?? 0);
  return (
    <div class="axis">
      {shown.map((at) =>
        step === 'day' ? (
          <span safe>{`${new Date(at).toISOString().slice(5, 10)} UTC`}</span>
        ) : (
          <Time at={new Date(at).toISOString()} short />
        ),
      )}
    </div>
  );
}

interface CountTableProps extends Required<Pick<MailChartProps, 'period' | 'filters'>> {
  readonly bars: readonly { readonly at: number; readonly counts: Counts }[];
}

/** Omits hours without email and states that do not occur. */
function CountTable({ bars, period: { step }, filters }: CountTableProps): Html {
  const states = STATES.filter((state) => bars.some(({ counts }) => counts[state] > 0));
  const busy = bars.filter(({ counts }) => counts.accepted > 0);
  return (
    <Table
      caption="Emails by time of acceptance and state"
      columns={['From', ...states.map((state) => [state, 'number'] as const)]}
    >
      {busy.reverse().map(({ at, counts }) => (
        <tr>
          <th scope="row">
            <a href={emailsPath({ from: at, to: at + STEP_MS[step] }, filters)}>
              {step === 'day' ? (
                <span safe>{`${new Date(at).toISOString().slice(0, 10)} UTC`}</span>
              ) : (
                <Time at={new Date(at).toISOString()} />
              )}
            </a>
          </th>
          {states.map((state) => (
            <NumberCell text={formatNumber(counts[state])} />
          ))}
        </tr>
      ))}
    </Table>
  );
}
