import { STATES } from '../../domain/statistics.ts';
import { type Db, execute, queryOneValue } from '../postgres/pool.ts';

/**
 * The dimensions and keys that a row of stat_additions counts for, each with the states that are new for it. The API key of a
 * batch's members is stored with the batch.
 */
export const SIDES = `
  CROSS JOIN LATERAL (
    VALUES ('all', 'all', addition.states), ('domain', addition.domain, addition.states),
           ('key', coalesce(addition.key_id, (SELECT key_id FROM batches WHERE id = addition.batch_id)), addition.states),
           ('batch', addition.batch_id, addition.states),
           ('bounce_reason', addition.bounced_for, addition.bounced_states)
    UNION ALL
    SELECT 'tag:' || tag.name, tag.value, addition.states
    FROM jsonb_to_recordset(addition.tags) AS tag(name text, value text)
  ) AS side(dimension, key, states)`;

const COLUMNS = STATES.join();
const SUMS = STATES.map(
  (state, bit) => `coalesce(sum(messages) FILTER (WHERE states & ${1 << bit} <> 0), 0) AS ${state}`,
).join();

const KEY = 'org_id, channel, dimension, step, at, key';

/** The advisory lock of this aggregation: one process at a time. */
const AGGREGATION_LOCK_ID = 4_418_093_674;

/**
 * Moves the oldest additions into stat_totals, in one statement, so that readers of both count each message once. Does nothing
 * while another process does it. Bounce reasons have no times, since they become known later.
 * @returns how many it took, at most `limit`
 */
export async function aggregateStatistics(db: Db, limit: number): Promise<number> {
  return queryOneValue(db, {
    name: 'aggregate_statistics',
    text: `WITH taken AS (
             DELETE FROM stat_additions
             WHERE id = ANY (ARRAY(SELECT id FROM stat_additions WHERE (SELECT pg_try_advisory_xact_lock($2)) ORDER BY id LIMIT $1))
             RETURNING *
           ), keyed AS MATERIALIZED (
             SELECT org_id, channel, side.dimension, side.key, hour, side.states, sent_step, delivered_step,
                    sum(messages) AS messages
             FROM taken AS addition ${SIDES} WHERE side.key IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
           ), stepped AS MATERIALIZED (
             SELECT keyed.*, step, date_trunc(step, hour, 'UTC') AS at FROM keyed, unnest(ARRAY['hour', 'day']) AS step
           ), counted AS (
             SELECT ${KEY}, ${SUMS} FROM stepped GROUP BY ${KEY}
           ), timed AS (
             SELECT ${KEY}, jsonb_object_agg(time_step, messages) FILTER (WHERE milestone = 'sent') AS sent_times,
                    jsonb_object_agg(time_step, messages) FILTER (WHERE milestone = 'delivered') AS delivered_times
             FROM (
               SELECT ${KEY}, milestone, time_step, sum(messages) AS messages
               FROM stepped CROSS JOIN LATERAL (VALUES ('sent', sent_step), ('delivered', delivered_step)) AS time(milestone, time_step)
               WHERE time_step IS NOT NULL AND dimension <> 'bounce_reason' GROUP BY ${KEY}, milestone, time_step
             ) AS times
             GROUP BY ${KEY}
           ), aggregated AS (
             INSERT INTO stat_totals AS total (${KEY}, ${COLUMNS}, sent_times, delivered_times)
             SELECT ${KEY}, ${COLUMNS}, sent_times, delivered_times FROM counted LEFT JOIN timed USING (${KEY})
             ON CONFLICT (${KEY}) DO UPDATE SET
               ${STATES.map((state) => `${state} = total.${state} + excluded.${state}`).join()},
               sent_times = add_times(total.sent_times, excluded.sent_times),
               delivered_times = add_times(total.delivered_times, excluded.delivered_times)
           )
           SELECT count(*)::int AS taken FROM taken`,
    values: [limit, AGGREGATION_LOCK_ID],
  });
}

/** Retention of statistics in days. It limits queries by day, and also applies to statistics of deleted emails. */
const KEPT_DAYS = { hour: 100, day: 400 };

/** Deletes at most `limit` expired rows, oldest first. */
export function deleteOldStatistics(db: Db, limit: number): Promise<number> {
  return execute(db, {
    name: 'delete_old_statistics',
    // Deletes by ctid, since a hash join of keys would read the whole table. The next call deletes rows that move meanwhile.
    text: `DELETE FROM stat_totals WHERE ctid = ANY (ARRAY(
             (SELECT ctid FROM stat_totals WHERE step = 'hour' AND at < now() - interval '${KEPT_DAYS.hour} days' ORDER BY at LIMIT $1)
             UNION ALL
             (SELECT ctid FROM stat_totals WHERE step = 'day' AND at < now() - interval '${KEPT_DAYS.day + 1} days' ORDER BY at LIMIT $1)
             LIMIT $1))`,
    values: [limit],
  });
}
