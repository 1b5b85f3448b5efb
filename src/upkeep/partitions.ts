import type { Logger } from 'pino';
import { createdAt, idTime } from '../lib/ids.ts';
import { project } from '../projection/emails.ts';
import { readClock } from '../store/postgres/clock.ts';
import { deleteOldMessages } from '../store/messages/retention.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import {
  addPartition,
  deleteDependentRows,
  deleteMoved,
  dropPartition,
  dropPartitionKeeping,
  expirePartition,
  findAbandoned,
  findMoved,
  type IdRange,
  listPartitions,
  type Partition,
  PARTITIONED_TABLES,
} from '../store/upkeep/partitions.ts';
import type { UpkeepStep } from './task.ts';

const DAY_MS = 86_400_000;
/** Each partition slows down statements that read all of them; 12 cost little (decision 132). */
const MAX_PARTITIONS = 12;
const MAX_DAYS_PER_PARTITION = 30;
/** Partitions that are created before they are needed. Rows without a partition go to the default one. */
const PARTITIONS_AHEAD = 2;
/** Longer than the 30 days of files. Unsent email is never dropped. */
const MIN_RETENTION_DAYS = 31;
/** Limits a statement to about a second. */
const EMAILS_PER_STEP = 20_000;
const ROWS_PER_STEP = 5_000;

export interface PartitionDeps {
  readonly pool: Pool;
  /** The setting `EMAIL_RETENTION_DAYS`; 0 is forever. */
  readonly emailRetentionDays: number;
  /** The setting `REQUEST_LOG_DAYS`. */
  readonly requestLogDays: number;
  readonly log: Logger;
}

type Prefix = 'em' | 'req';
const idAt = (at: number, prefix: Prefix = 'em') => `${prefix}_${idTime(at)}`;

/** Returns the days of a new partition, so that a retention keeps at most 12 of them. @param retentionDays 0 is forever */
export function partitionDays(retentionDays: number): number {
  if (retentionDays === 0) return MAX_DAYS_PER_PARTITION;
  return Math.min(Math.ceil(Math.max(retentionDays, MIN_RETENTION_DAYS) / MAX_PARTITIONS), MAX_DAYS_PER_PARTITION);
}

/** Adds the next partitions of emails, and those that an interrupted run has not added. @param now Unix milliseconds */
export async function addPartitions(pool: Pool, retentionDays: number, now: number): Promise<number> {
  const days = partitionDays(retentionDays);
  const partitions = await listPartitions(pool, 'emails');
  const existing = partitions.length;
  let last = partitions.at(-1);
  while (last && last.end_id < idAt(now + PARTITIONS_AHEAD * days * DAY_MS)) {
    last = nextPartition(last, days);
    partitions.push(last);
  }
  for (const partition of partitions) {
    // The one of emails is first: a partition of another table without it is dropped.
    for (const table of PARTITIONED_TABLES) await addPartition(pool, table, partition);
  }
  return partitions.length - existing;
}

function nextPartition({ end_id }: Partition, days: number, prefix?: Prefix): Partition {
  return partitionFrom(createdAt(`${end_id}${'0'.repeat(16)}`), days, prefix);
}

/** Returns the partition of a number of days. @param begin the start of a day, Unix milliseconds @param prefix of its ids */
export function partitionFrom(begin: number, days: number, prefix?: Prefix): Partition {
  const suffix = new Date(begin).toISOString().slice(0, 10).replaceAll('-', '');
  return { suffix, first_id: idAt(begin, prefix), end_id: idAt(begin + days * DAY_MS, prefix) };
}

/**
 * Drops the partitions whose emails have all exceeded the retention, with their dependent rows, one step at a time. Emails that are
 * unsent, or have files that are not deleted yet, stay in the default partition until they have ended. Emails of organizations that
 * have been suspended for longer than the retention fail.
 * @param now Unix milliseconds
 */
export async function expireEmails(
  { pool, emailRetentionDays, log }: Omit<PartitionDeps, 'requestLogDays'>,
  now: number,
  limits = { emails: EMAILS_PER_STEP, rows: ROWS_PER_STEP },
): Promise<UpkeepStep> {
  const partitions = await listPartitions(pool, 'emails');
  const days = Math.max(emailRetentionDays, MIN_RETENTION_DAYS);
  const before = idAt(now - days * DAY_MS);
  const kept: string[] = [];
  for (const partition of emailRetentionDays > 0 ? partitions.filter(({ end_id }) => end_id <= before) : []) {
    const abandoned = await failAbandoned(pool, partition, days, limits.rows);
    if (abandoned > 0) return { done: abandoned, next: '' };
    const expired = await expirePartition(pool, partition, limits.emails);
    if (expired !== null) return { done: expired, next: '' };
    kept.push(partition.suffix);
  }

  await dropOrphans(pool, partitions);
  for (const gap of gapsBetween(partitions)) {
    const abandoned = await failAbandoned(pool, gap, days, limits.rows);
    const deleted = abandoned + (await deleteMoved(pool, gap, limits.rows));
    if (deleted > 0) return { done: deleted, next: '' };
    if ((await deleteDependentRows(pool, gap, limits.rows)) === limits.rows) return { done: 0, next: '' };
  }
  if (kept.length > 0)
    log.warn(
      { partitions: kept },
      'expired partitions kept: they have many unsent emails or files that are not deleted yet',
    );
  return { done: 0, next: null };
}

/** Deletes records of chat-app messages and SMS after the retention. Those that are still to be sent stay. @param now Unix milliseconds */
export async function expireMessages(
  { pool, emailRetentionDays }: Pick<PartitionDeps, 'pool' | 'emailRetentionDays'>,
  now: number,
  limit = ROWS_PER_STEP,
): Promise<UpkeepStep> {
  if (emailRetentionDays === 0) return { done: 0, next: null };
  const days = Math.max(emailRetentionDays, MIN_RETENTION_DAYS);
  const done = await deleteOldMessages(pool, idTime(now - days * DAY_MS), limit);
  return { done, next: done > 0 ? '' : null };
}

const ABANDONED_ERROR = 'Its organization has been suspended for longer than records are kept.';

/** Fails the queued emails of a partition that nobody will send. @returns their number */
async function failAbandoned(
  pool: Pool,
  { first_id, end_id }: Pick<Partition, 'first_id' | 'end_id'>,
  days: number,
  limit: number,
): Promise<number> {
  const ids = await findAbandoned(pool, first_id ?? '', end_id, days, limit);
  if (ids.length === 0) return 0;
  const failed = ids.map((id) => ({ id, error: ABANDONED_ERROR }));
  const changed = await transaction(pool, (client) => project(client, 'failed', failed));
  return changed.length;
}

/** Returns the ranges of ids that no partition covers, before the first one and between others: their partitions were dropped. */
function gapsBetween(partitions: readonly Partition[]): IdRange[] {
  return partitions.flatMap(({ first_id: end }, index) => {
    const first = partitions[index - 1]?.end_id ?? 'em_';
    return end !== null && first < end ? [{ first_id: first, end_id: end }] : [];
  });
}

/** Drops partitions of other tables whose partition of `emails` is gone. */
async function dropOrphans(pool: Pool, partitions: readonly Partition[]): Promise<void> {
  const kept = new Set(partitions.map(({ suffix }) => suffix));
  for (const table of PARTITIONED_TABLES) {
    const orphans = (await listPartitions(pool, table)).filter(({ suffix }) => !kept.has(suffix));
    for (const { suffix, first_id, end_id } of orphans) {
      const moved = table === 'email_terms' ? [] : await findMoved(pool, { first_id: first_id ?? 'em_', end_id });
      await dropPartitionKeeping(pool, table, suffix, moved);
    }
  }
}

/**
 * Adds partitions to the log of API requests, a day each, and drops those that are older than its retention. With a retention of
 * 0 days nothing new is logged, and all days before today are dropped.
 * @param now Unix milliseconds
 */
export async function rotateRequestLog(pool: Pool, days: number, now: number): Promise<number> {
  const partitions = await listPartitions(pool, 'api_requests');
  let last = partitions.at(-1) ?? partitionFrom(Math.floor(now / DAY_MS - 1) * DAY_MS, 1, 'req');
  while (last.end_id < idAt(now + PARTITIONS_AHEAD * DAY_MS, 'req')) {
    last = nextPartition(last, 1, 'req');
    await addPartition(pool, 'api_requests', last);
  }
  const expired = partitions.filter(({ end_id }) => end_id <= idAt(now - days * DAY_MS, 'req'));
  for (const { suffix } of expired) await dropPartition(pool, 'api_requests', suffix);
  return expired.length;
}

export function makePartitionUpkeep(deps: PartitionDeps) {
  const now = async () => (await readClock(deps.pool)).getTime();
  return {
    /** Adds the partitions that emails need next. */
    async addPartitions(): Promise<UpkeepStep> {
      return { done: await addPartitions(deps.pool, deps.emailRetentionDays, await now()), next: null };
    },

    /** Deletes records of messages after the retention: emails with their partition, then others row by row. */
    async expireEmails(): Promise<UpkeepStep> {
      const step = await expireEmails(deps, await now());
      return step.next === null ? expireMessages(deps, await now()) : step;
    },

    /** Drops days of the log of API requests after the retention, and adds the days that it needs next. */
    async rotateRequestLog(): Promise<UpkeepStep> {
      return { done: await rotateRequestLog(deps.pool, deps.requestLogDays, await now()), next: null };
    },
  };
}
