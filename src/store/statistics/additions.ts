import type { BounceReason } from '../../domain/email/email.ts';
import type { StateSet, StatisticsChannel } from '../../domain/statistics.ts';
import { timeStep } from '../../lib/times.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute } from '../postgres/pool.ts';

/** The columns of a message that statistics count by. Times are in Postgres's notation. */
interface StatColumns {
  readonly org_id: string;
  readonly accepted_at: string;
  /** When it was due to be sent. */
  readonly due_at: string;
  readonly key_id: string | null;
  /** As JSON; null without tags. */
  readonly tags: string | null;
}

/** A message, with the states in which the statistics have counted it. */
export interface CountedMessage extends StatColumns {
  /** The states that it was counted in; null if that is left to the backfill. */
  readonly reached: StateSet | null;
}

/** The dimensions by which the statistics count a message. */
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
  const rows = countAlike(additions);
  await execute(db, {
    name: 'add_statistics',
    text: `INSERT INTO stat_additions (org_id, channel, hour, domain, key_id, batch_id, tags, states, bounced_for,
                                       bounced_states, sent_step, delivered_step, messages)
           SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::jsonb[],
                                $8::smallint[], $9::text[], $10::smallint[], $11::smallint[], $12::smallint[], $13::integer[])`,
    values: [
      ...columns(rows, 'org_id', 'channel', 'hour', 'domain', 'key_id', 'batch_id', 'tags', 'states', 'bounced_for'),
      ...columns(rows, 'bounced_states', 'sent_step', 'delivered_step', 'messages'),
    ],
  });
}

/** Counts messages by what statistics keep of them: the hour of their acceptance, and the steps of their times. */
function countAlike(additions: readonly StatAddition[]) {
  const rows = new Map<string, ReturnType<typeof rowOf> & { messages: number }>();
  for (const addition of additions) {
    const row = rowOf(addition);
    const key = JSON.stringify(row);
    const alike = rows.get(key);
    if (alike) alike.messages++;
    else rows.set(key, Object.assign(row, { messages: 1 }));
  }
  return [...rows.values()];
}

function rowOf(addition: StatAddition) {
  const { org_id, channel, accepted_at, due_at, domain, key_id, batch_id, tags } = addition;
  const { states, bounced_for, bounced_states, sent_at, delivered_at } = addition;
  const due = Date.parse(due_at);
  const sent_step = sent_at === null ? null : timeStep(Date.parse(sent_at) - due);
  const delivered_step = delivered_at === null ? null : timeStep(Date.parse(delivered_at) - due);
  const hour = new Date(new Date(accepted_at).setUTCMinutes(0, 0, 0)).toISOString();
  const group = { org_id, channel, hour, domain, key_id, batch_id, tags, states, bounced_for, bounced_states };
  return Object.assign(group, { sent_step, delivered_step });
}
