import { addCounts, type Counts, type State, STATES } from '../domain/statistics.ts';
import { percentile, formatDuration } from '../lib/times.ts';
import { readSeries, type Series } from '../store/statistics/series.ts';
import { MailChart } from './chart.tsx';
import { NumberCell, Section, Sub, Table } from './elements.tsx';
import type { Context, Html } from './page.ts';
import { emailsPath, lastSteps, type Period } from './periods.ts';
import { changeInWords, judgeRate, RATE_KINDS, type RateKind, shareInWords } from './rates.ts';
import { formatNumber } from '../lib/text.ts';

/** Counts of emails with one key of a dimension, in a period and in the preceding period. */
interface Figures {
  readonly series: Series;
  readonly now: Counts;
  readonly before: Counts;
}

/** Reads the counts of emails with one key of a dimension. */
export async function readFigures(
  { pool, organization }: Context,
  { step, from, to }: Period,
  dimension = 'all',
  key = 'all',
): Promise<Figures> {
  const filter = { channel: 'email', step, dimension, key, to: new Date(to) } as const;
  const [[series], [earlier]] = await Promise.all([
    readSeries(pool, organization.id, { ...filter, from: new Date(from) }, 1),
    readSeries(pool, organization.id, { ...filter, from: new Date(2 * from - to), to: new Date(from) }, 1),
  ]);
  const current = series ?? { key, points: [], times: { sent: new Map(), delivered: new Map() } };
  return { series: current, now: addCounts(current.points), before: addCounts(earlier?.points ?? []) };
}

/** Rates as large numbers. @param before the name of the preceding period, such as `the day before`; null shows no comparison */
export function RateFigures({
  figures,
  before,
}: {
  figures: Pick<Figures, 'now' | 'before'>;
  before: string | null;
}): Html {
  return (
    <dl class="figures rates">
      {RATE_KINDS.map((kind) => (
        <RateFigure kind={kind} figures={figures} before={before} />
      ))}
    </dl>
  );
}

const percentOf = (share: number) => shareInWords(share, 1);

/** The beginning of the advice on a rate, by its judgement. */
const ADVICE = { good: 'Keep', warning: 'High: keep', bad: 'Too high: keep' } as const;

function RateFigure({
  kind,
  figures: { now, before },
  before: beforeName,
}: {
  kind: RateKind;
  figures: Pick<Figures, 'now' | 'before'>;
  before: string | null;
}): Html {
  const [part, total] = [now[kind.state], now[kind.of]];
  const judged = judgeRate(kind, now);
  const change = beforeName === null ? null : changeInWords(kind, now, before);
  return (
    <div class={judged ?? undefined}>
      <dt safe>{kind.name}</dt>
      <dd>
        <span safe>{total === 0 ? '–' : shareInWords(part, total)}</span>
        <Sub text={`${formatNumber(part)} of ${formatNumber(total)} ${kind.of}`} />
        {beforeName !== null && (
          <Sub text={change === null ? `nothing to compare with ${beforeName}` : `${change} from ${beforeName}`} />
        )}
        {kind.limits !== undefined && (
          <Sub
            text={`${ADVICE[judged ?? 'good']} it below ${percentOf(kind.limits.warning)}, never above ${percentOf(kind.limits.bad)}`}
          />
        )}
      </dd>
    </div>
  );
}

/** The number of emails per state that they have reached, with links to lists of emails. */
export function StateTable({ counts, linkTo }: { counts: Counts; linkTo: (state: State) => string }): Html {
  return (
    <>
      <Table caption="Emails by state" columns={['State', ['Emails', 'number'], ['Share', 'number']]}>
        {STATES.filter((state) => counts[state] > 0).map((state) => (
          <tr>
            <th scope="row">{state}</th>
            <td class="number">
              <a href={linkTo(state)} aria-label={`${formatNumber(counts[state])} ${state}: show them`} safe>
                {formatNumber(counts[state])}
              </a>
            </td>
            <NumberCell text={shareInWords(counts[state], counts.accepted)} />
          </tr>
        ))}
      </Table>
      <p class="hint">
        Emails accepted in this time, once for each state that they ever reached. A number leads to those whose status
        implies the state now, which may be fewer.
      </p>
    </>
  );
}

/** Delivery times, measured from the time at which emails were due. */
export function TimesTable({ times }: { times: Series['times'] }): Html {
  const cell = (steps: ReadonlyMap<number, number>, part: number): string => {
    const time = percentile(steps, part);
    return time === null ? '–' : formatDuration(time);
  };
  return (
    <>
      <Table
        caption="Delivery time"
        columns={['Milestone', ['Emails', 'number'], ['Median', 'number'], ['p95', 'number']]}
      >
        {(['sent', 'delivered'] as const).map((name) => (
          <tr>
            <th scope="row">{name}</th>
            <NumberCell text={formatNumber([...times[name].values()].reduce((sum, emails) => sum + emails, 0))} />
            <NumberCell text={cell(times[name], 0.5)} />
            <NumberCell text={cell(times[name], 0.95)} />
          </tr>
        ))}
      </Table>
      <p class="hint">Measured from acceptance or the scheduled time. Approximate.</p>
    </>
  );
}

/** Returns the path of a tag's page. @param tag `name:value` */
export function tagPath(tag: string): string {
  return `/dashboard/tags?tag=${encodeURIComponent(tag)}`;
}

interface StatisticsProps {
  readonly context: Context;
  readonly dimension: string;
  /** The key in the dimension. */
  readonly of: string;
  /** The filters of the list of emails that select those with the key. */
  readonly filters: Readonly<Record<string, string>>;
}

/** The statistics of the last 30 days of a domain or tag. */
export async function Statistics({ context, dimension, of: key, filters }: StatisticsProps): Promise<string> {
  const period = await lastSteps(context.pool, 'day', 30);
  const figures = await readFigures(context, period, dimension, key);
  return (
    <Section title="Last 30 days">
      {figures.now.accepted === 0 ? (
        <p class="muted">No email was accepted in this time.</p>
      ) : (
        <>
          <RateFigures figures={figures} before="the 30 days before" />
          <MailChart points={figures.series.points} period={period} filters={filters} />
          <StateTable counts={figures.now} linkTo={(state) => emailsPath(period, filters, state)} />
        </>
      )}
    </Section>
  );
}
