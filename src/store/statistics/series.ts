import { groupBy } from '../../lib/group.ts';
import { type Counts, setOf, STATES, type StatisticsChannel } from '../../domain/statistics.ts';
import { type Db, queryOneValue, queryRows } from '../postgres/pool.ts';
import { SIDES } from './totals.ts';

/** Milliseconds of an hour or day. */
export const STEP_MS = { hour: 3_600_000, day: 86_400_000 };
export type Step = keyof typeof STEP_MS;

export interface StatisticsFilter {
  readonly channel: StatisticsChannel;
  /** The hours or days from the one that contains `from` to the last one that begins before `to`; at least the first. */
  readonly from: Date;
  readonly to: Date;
  readonly step: Step;
  /** `all`, `domain`, `key`, `batch`, `bounce_reason`, or `tag:` and the name of a tag. */
  readonly dimension: string;
  /** Restricts the statistics to this key; null for all. */
  readonly key: string | null;
}

export type Point = Counts & { readonly at: string };

export type Milestone = 'sent' | 'delivered';

/** Messages with one key of a dimension. */
export interface Series {
  readonly key: string;
  /** Hours or days in which messages were accepted, in their order. */
  readonly points: readonly Point[];
  /** Messages by the time from when they were due until they were sent or delivered: at most 2^(step/2) ms. */
  readonly times: Readonly<Record<Milestone, ReadonlyMap<number, number>>>;
}

/** Returns the start of the hour or day of a time, in UTC. */
export function beginOf(time: Date, step: Step): Date {
  return new Date(Math.floor(time.getTime() / STEP_MS[step]) * STEP_MS[step]);
}

/** Rows of the statistics that a filter selects by its values: those that are aggregated, and the others. */
const SELECTED = {
  totals: `stat_totals WHERE org_id = $1 AND channel = $2 AND dimension = $3 AND step = $4 AND at >= $5 AND at < $6
    AND ($7::text IS NULL OR key = $7)`,
  additions: `stat_additions AS addition ${SIDES}
    WHERE org_id = $1 AND channel = $2 AND side.dimension = $3 AND side.key IS NOT NULL
      AND hour >= $5 AND date_trunc($4, hour, 'UTC') < $6 AND ($7::text IS NULL OR side.key = $7)`,
};

function valuesOf(orgId: string, { channel, dimension, step, from, to, key }: StatisticsFilter): unknown[] {
  const begin = beginOf(from, step);
  const end = new Date(Math.max(to.getTime(), begin.getTime() + 1));
  return [orgId, channel, dimension, step, begin.toISOString(), end.toISOString(), key];
}

const SUMS = STATES.map((state) => `sum(${state})::float8 AS ${state}`).join();
const ADDED = STATES.map((state) => `CASE WHEN side.states & ${setOf(state)} = 0 THEN 0 ELSE messages END`).join();

/**
 * Reads statistics: each message counts once for each state that it ever reached, in the hour or day of its acceptance.
 * @param limit the maximum number of keys: those with the most accepted messages, then by key
 */
export async function readSeries(db: Db, orgId: string, filter: StatisticsFilter, limit: number): Promise<Series[]> {
  const values = valuesOf(orgId, filter);
  const rows = await queryRows<Point & { key: string }>(db, {
    name: 'read_series',
    // Only the keys of the result are summed by hour or day and state: the others may be many.
    text: `WITH accepted(key, messages) AS (
             SELECT key, accepted FROM ${SELECTED.totals}
             UNION ALL
             SELECT side.key, CASE WHEN side.states & ${setOf('accepted')} = 0 THEN 0 ELSE messages END FROM ${SELECTED.additions}
           ), top AS MATERIALIZED (
             SELECT key, sum(messages) AS all_accepted FROM accepted GROUP BY key ORDER BY all_accepted DESC, key LIMIT $8
           ), part(key, at, ${STATES.join()}) AS (
             SELECT key, at, ${STATES.join()} FROM ${SELECTED.totals} AND key = ANY (ARRAY(SELECT key FROM top))
             UNION ALL
             SELECT side.key, date_trunc($4, hour, 'UTC'), ${ADDED} FROM ${SELECTED.additions}
               AND side.key = ANY (ARRAY(SELECT key FROM top))
           ), summed AS MATERIALIZED (
             SELECT key, at, ${SUMS} FROM part GROUP BY key, at
           )
           SELECT summed.* FROM summed JOIN top USING (key) ORDER BY all_accepted DESC, key, at`,
    values: [...values, limit],
  });
  const points = new Map<string, Point[]>();
  for (const { key, ...point } of rows) {
    const ofKey = points.get(key);
    if (ofKey) ofKey.push(point);
    else points.set(key, [point]);
  }
  const times = await readTimes(db, [...values, [...points.keys()]]);
  return [...points].map(([key, ofKey]) => ({
    key,
    points: ofKey,
    times: { sent: times.get(`sent ${key}`) ?? new Map(), delivered: times.get(`delivered ${key}`) ?? new Map() },
  }));
}

/** Returns true if the statistics of a filter are in more than `limit` rows, which bounds what reading them costs. */
export function hasMoreStatistics(db: Db, orgId: string, filter: StatisticsFilter, limit: number): Promise<boolean> {
  return queryOneValue(db, {
    name: 'has_more_statistics',
    text: `SELECT count(*) > $8 FROM (SELECT FROM ${SELECTED.totals} LIMIT $8 + 1) AS row`,
    values: [...valuesOf(orgId, filter), limit],
  });
}

/** The times of some keys, by milestone and key. @param values those of a filter and the keys */
async function readTimes(db: Db, values: readonly unknown[]): Promise<Map<string, Map<number, number>>> {
  const rows = await queryRows<{ key: string; milestone: Milestone; time_step: number; messages: number }>(db, {
    name: 'read_times',
    text: `WITH part(key, milestone, time_step, messages) AS (
             SELECT key, milestone, time.step::int, time.messages::bigint
             FROM (SELECT key, sent_times, delivered_times FROM ${SELECTED.totals} AND key = ANY ($8)) AS total
                  CROSS JOIN LATERAL (VALUES ('sent', sent_times), ('delivered', delivered_times)) AS of(milestone, times)
                  CROSS JOIN LATERAL jsonb_each_text(of.times) AS time(step, messages)
             UNION ALL
             SELECT side.key, milestone, time_step, messages
             FROM (SELECT side.key, sent_step, delivered_step, messages FROM ${SELECTED.additions} AND side.key = ANY ($8)) AS side
                  CROSS JOIN LATERAL (VALUES ('sent', sent_step), ('delivered', delivered_step)) AS of(milestone, time_step)
             WHERE time_step IS NOT NULL AND $3 <> 'bounce_reason'
           )
           SELECT key, milestone, time_step, sum(messages)::float8 AS messages FROM part GROUP BY key, milestone, time_step`,
    values: [...values],
  });
  const times = new Map<string, Map<number, number>>();
  for (const [name, steps] of groupBy(rows, ({ key, milestone }) => `${milestone} ${key}`)) {
    times.set(name, new Map(steps.map(({ time_step: step, messages }) => [step, messages])));
  }
  return times;
}
