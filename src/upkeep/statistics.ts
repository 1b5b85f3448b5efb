import { idTime } from '../lib/ids.ts';
import { SCHEDULE_DAYS } from '../domain/limits.ts';
import type { MessageChannel } from '../domain/messages/message.ts';
import { STATISTICS_CHANNELS, type StatisticsChannel } from '../domain/statistics.ts';
import {
  emailDimensions,
  messageDimensions,
  type Progress,
  countChange,
  type StateChange,
} from '../projection/statistics.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { addStatistics, type StatDimensions } from '../store/statistics/additions.ts';
import {
  type Backfill,
  endPass,
  lockBackfill,
  lockNextEmails,
  lockNextMessages,
  recordBackfill,
  readEmailTimelines,
  readMessageTimelines,
  storeEmailProgress,
  storeMessageProgress,
} from '../store/statistics/backfill.ts';
import type { UpkeepStep } from './task.ts';

const MESSAGES_PER_STEP = 1_000;
/** Younger messages may belong to transactions that are not committed yet; the backfill would pass them. */
const MIN_AGE_MS = 60_000;
/** Reaches back to messages that were scheduled for the day in which both versions may serve. */
const SECOND_PASS_MS = (SCHEDULE_DAYS + 2) * 86_400_000;

/** A locked message with its additions to the statistics. */
interface UncountedMessage {
  readonly id: string;
  readonly progress: Progress;
  readonly dimensions: StatDimensions;
  readonly change: StateChange;
}

/**
 * Counts the messages of the previous version in the statistics, by their timelines, oldest first: those that it accepted, and
 * the changes that it made to others while both versions served. A day after the upgrade, a second pass counts the changes that
 * it made after the first had passed their messages.
 * @param now Unix milliseconds
 */
export async function backfillStatistics(pool: Pool, now: number, limit = MESSAGES_PER_STEP): Promise<UpkeepStep> {
  const counts: number[] = [];
  for (const channel of STATISTICS_CHANNELS) {
    counts.push(await transaction(pool, (client) => backfillChannel(client, channel, now, limit)));
  }
  return { done: counts.reduce((sum, count) => sum + count, 0), next: counts.includes(limit) ? '' : null };
}

/** @returns the number of messages that it has read */
async function backfillChannel(db: Db, channel: StatisticsChannel, now: number, limit: number): Promise<number> {
  const whole = await lockBackfill(db, channel);
  if (!whole) return 0;
  const [prefix] = whole.end_id.split('_');
  const idAt = (at: number) => `${prefix}_${idTime(at)}`;
  const old = idAt(now - MIN_AGE_MS);
  const backfill = { ...whole, end_id: old < whole.end_id ? old : whole.end_id };
  const found = await (channel === 'email'
    ? findEmails(db, backfill, limit)
    : findMessages(db, channel, backfill, limit));
  const added = found.flatMap(({ id, dimensions, progress, change }) => {
    const result = countChange(dimensions, progress, change);
    return result ? { id, ...result } : [];
  });
  await addStatistics(
    db,
    added.map(({ addition }) => addition),
  );
  const counted = added.map(({ id, progress }) => ({ id, ...progress }));
  await (channel === 'email' ? storeEmailProgress(db, counted) : storeMessageProgress(db, counted));
  const last = found.at(-1)?.id;
  if (last !== undefined) await recordBackfill(db, channel, last);
  else if (backfill.end_id === whole.end_id) await endPass(db, whole, idAt(now - SECOND_PASS_MS));
  return found.length;
}

async function findEmails(db: Db, backfill: Backfill, limit: number): Promise<UncountedMessage[]> {
  const timelines = await readEmailTimelines(db, await lockNextEmails(db, backfill, limit));
  return timelines.map((email) => ({
    id: email.id,
    progress: { reached: email.reached ?? 0, bounced_for: email.bounced_for },
    dimensions: emailDimensions(email),
    change: email,
  }));
}

async function findMessages(
  db: Db,
  channel: MessageChannel,
  backfill: Backfill,
  limit: number,
): Promise<UncountedMessage[]> {
  const timelines = await readMessageTimelines(db, await lockNextMessages(db, channel, backfill, limit));
  return timelines.map((message) => ({
    id: message.id,
    progress: { reached: message.reached ?? 0, bounced_for: null },
    dimensions: messageDimensions(message),
    change: message,
  }));
}
