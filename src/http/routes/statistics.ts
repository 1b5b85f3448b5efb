import { ServiceError } from '../../domain/errors.ts';
import { parseInstant } from '../../domain/instant.ts';
import { addCounts, ratesOf } from '../../domain/statistics.ts';
import { formatNumber } from '../../lib/text.ts';
import { percentile } from '../../lib/times.ts';
import { readClock } from '../../store/postgres/clock.ts';
import { hasMoreStatistics, readSeries, type Series, type Step, STEP_MS } from '../../store/statistics/series.ts';
import { route } from '../route.ts';
import { Statistics, StatisticsQuery } from '../schemas/statistics.ts';

const MAX_DAYS: Readonly<Record<Step, number>> = { hour: 31, day: 400 };
/** The first time that Postgres and ISO 8601 write alike. */
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00Z');
/** Limits a response to 50 series of 744 hours. */
const MAX_SERIES = 50;
/** The maximum number of counts, one for each key and hour or day, that a request adds up: less than a second of the database's time. */
const MAX_ROWS = 200_000;

export const statistics = route('getStatistics', 'Get statistics', {
  description:
    'How many messages were accepted in each hour or day, and how many of them have ever reached each state by now. A message ' +
    'counts once for each state, in the hour or day of its acceptance.',
  querystring: StatisticsQuery,
  response: { 200: Statistics },
  handler: async ({ pool }, { orgId, query }) => {
    const { step = 'hour', by: dimension = 'all', channel = 'email' } = query;
    const to = query.to === undefined ? await readClock(pool) : (parseInstant(query.to) as Date);
    const dayBefore = new Date(Math.max(to.getTime() - STEP_MS.day, EARLIEST_MS));
    const from = query.from === undefined ? dayBefore : (parseInstant(query.from) as Date);
    checkPeriod(from, to, step);
    const filter = { channel, from, to, step, dimension, key: null };
    if (await hasMoreStatistics(pool, orgId, filter, MAX_ROWS)) throw tooManyRows(step);
    const series = await readSeries(pool, orgId, filter, MAX_SERIES);
    const isEmpty = dimension === 'all' && series.length === 0;
    return {
      from: from.toISOString(),
      to: to.toISOString(),
      step,
      series: (isEmpty ? [EMPTY_SERIES] : series).map(present),
    };
  },
});

const EMPTY_SERIES: Series = { key: 'all', points: [], times: { sent: new Map(), delivered: new Map() } };

/** @throws ServiceError validation_error if the period is reversed or too long */
function checkPeriod(from: Date, to: Date, step: Step): void {
  if (from > to) throw new ServiceError('validation_error', 'must not be after to', 'from');
  const days = MAX_DAYS[step];
  if (to.getTime() - from.getTime() <= days * STEP_MS.day) return;
  throw new ServiceError(
    'validation_error',
    `is too long before to; at most ${days} days are allowed by ${step}`,
    'from',
  );
}

function tooManyRows(step: Step): ServiceError {
  const narrower =
    step === 'hour' ? 'use step=day, shorten the period with from and to,' : 'shorten the period with from and to';
  const message = `has more than ${formatNumber(MAX_ROWS)} counts in this period; ${narrower} or use another by`;
  return new ServiceError('validation_error', message, 'by');
}

function present({ key, points, times }: Series) {
  const totals = addCounts(points);
  const time = (part: number) => {
    const ms = percentile(times.delivered, part);
    return ms === null ? null : Math.round(ms);
  };
  return { key, points, totals, rates: ratesOf(totals), time_to_delivery_ms: { p50: time(0.5), p95: time(0.95) } };
}
