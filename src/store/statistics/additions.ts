import type { BounceReason } from '../../domain/email/email.ts';
import type { StateSet, StatisticsChannel } from '../../domain/statistics.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute } from '../postgres/pool.ts';

/** The columns of a message that statistics count by. Times are in Postgres's notation, since they only go back to it. */
interface StatColumns {
  readonly org_id: string;
  readonly accepted_at: string;
  /** When it was due to be sent. */
  readonly due_at: string;
  readonly key_id: string | null;
  /** As JSON; null without tags. */
  readonly tags: string | null;
}

/** A message with what statistics have counted of it. */
export interface CountedMessage extends StatColumns {
  /** The states that it was counted in; null if that is left to the backfill. */
  readonly reached: StateSet | null;
}

/** What statistics count a message by. */
export interface StatDimensions extends StatColumns {
  readonly channel: StatisticsChannel;
  readonly domain: string | null;
  readonly batch_id: string | null;
}

/** A message that has reached states for the first time. */
export interface StatAddition extends StatDimensions {
  readonly states: StateSet;
  /** The reason of its first bounce, and the states that are new for that reason. */
  readonly bounced_for: BounceReason | null;
  readonly bounced_states: StateSet | null;
  /** When it was sent or delivered, if one of the states is that and the time is known. */
  readonly sent_at: string | null;
  readonly delivered_at: string | null;
}

/** Adds messages to the statistics, one row for all alike. The caller changes the messages in the same transaction. */
export async function addStatistics(db: Db, additions: readonly StatAddition[]): Promise<void> {
  if (additions.length === 0) return;
  await execute(db, {
    name: 'add_statistics',
    text: `INSERT INTO stat_additions (org_id, channel, hour, domain, key_id, batch_id, tags, states, bounced_for,
                                       bounced_states, sent_step, delivered_step, messages)
           SELECT org_id, channel, date_trunc('hour', accepted_at, 'UTC'), domain, key_id, batch_id, tags, states, bounced_for,
                  bounced_states, time_step(due_at, sent_at), time_step(due_at, delivered_at), count(*)
           FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::text[],
                       $8::jsonb[], $9::smallint[], $10::text[], $11::smallint[], $12::timestamptz[], $13::timestamptz[])
                  AS addition(org_id, channel, accepted_at, due_at, domain, key_id, batch_id, tags, states, bounced_for,
                              bounced_states, sent_at, delivered_at)
           GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12`,
    values: [
      ...columns(additions, 'org_id', 'channel', 'accepted_at', 'due_at', 'domain', 'key_id', 'batch_id', 'tags'),
      ...columns(additions, 'states', 'bounced_for', 'bounced_states', 'sent_at', 'delivered_at'),
    ],
  });
}
