import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { newId } from '../domain/ids.ts';
import {
  deferOutbox,
  deleteOutbox,
  type EmailRow,
  foldOutbox,
  lockChats,
  lockDomains,
  lockGroups,
  lockLateSingles,
  lockOutbox,
  lockWakes,
  type OutboxRow,
  type Waiting,
  whatWaits,
} from '../store/outbox/outbox.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/postgres/pool.ts';
import { carried } from '../telemetry/topics.ts';
import { type Budget, makeBudget } from './budget.ts';
import { type Mode, needsBudget, plan } from './plan.ts';

export interface RelayDeps {
  readonly pool: Pool;
  /** Asks Temporal for what a row says. Rejects with TemporalUnreachable when no row could succeed now. */
  readonly carryOut: (row: OutboxRow) => Promise<void>;
  /** Workflows that it may start in a second while more emails than that are waiting. */
  readonly startsPerSecond: number;
  readonly log: Logger;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** Temporal cannot be reached or is overloaded: nothing is wrong with the rows. */
export class TemporalUnreachable extends Error {}

export interface Relay {
  /** Says that the outbox may have rows. Cheap; many calls make one look. */
  readonly wake: () => void;
  /** Ends the relay after the rows it holds; resolves when it has let go of them. */
  readonly stop: () => Promise<void>;
}

/** Rows looked at together: what a burst is judged by. */
const LOOK = 2_000;
/** Rows asked for at once, so this is also the number of Temporal calls under way. */
const TAKE = 100;
/** Rows about endpoints, or about chores, at once; many of them may speak of one. */
const WAKES = 500;
/** Rows about domains at once. */
const DOMAINS = 50;
/** Milliseconds after which it looks without being woken. */
const SWEEP = 1_000;
/**
 * Milliseconds between two rounds in which what waits is put together. A workflow costs some 40 ms of processor time
 * whatever it carries, so while more emails come than may have their own, all that come in this time share one.
 */
const GROUPS_APART = 100;
const LONGEST_PAUSE = 10_000;
/** Milliseconds between two looks of which the first had nothing left to do: it is woken with every request. */
const LOOKS_APART = 10;

/**
 * Carries outbox rows to Temporal, the oldest first, for as long as it runs; what the budget of starts does not reach
 * for is put together into groups. Any number of relays may share an outbox:
 * each holds the rows it works on, and a row leaves only once Temporal has acknowledged it, so one may be carried out
 * twice and none is forgotten. While Postgres or Temporal is away it tries again, ever more slowly.
 */
export function startRelay(deps: RelayDeps): Relay {
  const { now = () => performance.now() } = deps;
  const stopping = new AbortController();
  let woken = false;
  let rouse: (() => void) | undefined;

  const wake = (): void => {
    woken = true;
    rouse?.();
  };

  const pause = async (milliseconds: number): Promise<void> => {
    const waking = new AbortController();
    rouse = () => waking.abort();
    if (!woken) {
      const signal = AbortSignal.any([stopping.signal, waking.signal]);
      await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
    }
    rouse = undefined;
  };

  const rest = async (milliseconds: number): Promise<void> => {
    await sleep(milliseconds, undefined, { signal: stopping.signal }).catch(() => undefined);
  };

  const pace: Pace = {
    now,
    emails: makeBudget(deps.startsPerSecond, now),
    chats: makeBudget(deps.startsPerSecond, now),
    groupedAt: -Infinity,
  };
  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        const next = await look(deps, pace);
        if (failures > 0) deps.log.info({ failures }, 'the relay works again');
        failures = 0;
        if (next === 'wait') {
          await rest(LOOKS_APART);
          await pause(SWEEP);
        }
        if (typeof next === 'number') await rest(next);
      } catch (error) {
        if (failures++ === 0) deps.log.warn({ reason: reasonOf(error) }, 'the relay cannot work now and tries again');
        const backOff = Math.min(SWEEP * 2 ** (failures - 1), LONGEST_PAUSE);
        await rest(backOff);
      }
    }
  };
  const running = run();

  return {
    wake,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

interface Pace {
  readonly now: () => number;
  readonly emails: Budget;
  /** Chat-app messages cannot share a workflow: with a budget of their own, a burst of them takes nothing from email. */
  readonly chats: Budget;
  /** When emails were last put together, by the monotonic clock. */
  groupedAt: number;
}

/** What to do before it looks again: nothing, wait to be woken, or wait so many milliseconds. */
type Next = 'go on' | 'wait' | number;

/** Takes rows and puts them together or carries them out. */
async function look(deps: RelayDeps, pace: Pace): Promise<Next> {
  const waiting = await whatWaits(deps.pool);
  if (!Object.values(waiting).includes(true)) return 'wait';
  const { next, unreachable } = await transaction(deps.pool, async (client): Promise<Looked> => {
    // First, since they are few, and putting a burst together takes its time.
    const wakes = waiting.wakes ? await lockWakes(client, WAKES) : [];
    const domains = waiting.domains ? await lockDomains(client, DOMAINS) : [];
    const room = Math.min(TAKE, pace.chats.available());
    const chats = waiting.chats ? await lockChats(client, room) : [];
    pace.chats.spend(chats.length);
    const unreachable = await carryOut(deps, client, [...wakes, ...domains, ...chats]);
    if (unreachable) return { next: 'wait', unreachable };
    const emails = await lookAtEmails(deps, client, pace, waiting);
    const chatsWait = waiting.chats && chats.length === room ? pace.chats.untilNext() : Infinity;
    return { ...emails, next: sooner(emails.next, chatsWait) };
  });
  if (unreachable) throw unreachable;
  return next;
}

async function lookAtEmails(deps: RelayDeps, client: Db, pace: Pace, waiting: Waiting): Promise<Looked> {
  const { emails: budget } = pace;
  // Before more is put together: workers have something to do meanwhile.
  const ready = waiting.groups ? await lockGroups(client, TAKE) : [];
  const away = await carryOut(deps, client, ready);
  if (away) return { next: 'wait', unreachable: away };
  // Who can start all that it carries out at once leaves the rest to other relays.
  const limit = budget.available() < TAKE ? LOOK : TAKE;
  const oldest = waiting.emails ? await lockOutbox(client, limit) : [];
  const isFull = oldest.length === limit;
  // A password that somebody waits for does not stand behind a newsletter of 10,000.
  const rows = isFull ? [...oldest, ...(await lockLateSingles(client, oldest.at(-1)?.id ?? '0', TAKE))] : oldest;
  const apart = pace.groupedAt + GROUPS_APART - pace.now();
  const mode = isFull ? 'each' : modeOf(apart, rows.length > (deps.startsPerSecond * GROUPS_APART) / 1_000);
  const { alone, groups, later } = plan(rows, budget.available(), mode);
  const taken = alone.slice(0, TAKE);
  budget.spend(groups.length + taken.filter(needsBudget).length);
  const unreachable = await carryOut(deps, client, taken);
  if (groups.length > 0) await fold(client, groups);
  if (groups.some(([row]) => row?.batch_id === null)) pace.groupedAt = pace.now();
  if (groups.length > 0 || alone.length > TAKE) return { next: 'go on', unreachable };
  if (later > 0) return { next: Math.max(budget.untilNext(), apart, 0), unreachable };
  return { next: isFull || ready.length === TAKE ? 'go on' : 'wait', unreachable };
}

/**
 * What becomes of emails while the last ones that were put together are not long gone.
 * @param apart milliseconds until it is time for the next round
 * @param areMany whether more have come than the budget gets in the time between two rounds
 */
function modeOf(apart: number, areMany: boolean): Mode {
  if (apart > 0) return 'later';
  return areMany && apart >= -GROUPS_APART ? 'together' : 'each';
}

function sooner(next: Next, wait: number): Next {
  if (next === 'go on' || wait === Infinity) return next;
  return next === 'wait' ? wait : Math.min(next, wait);
}

interface Looked {
  readonly next: Next;
  readonly unreachable?: TemporalUnreachable | undefined;
}

/** Groups become rows of their own, carried out next: a group whose start is repeated has the same id and members. */
async function fold(client: Db, groups: readonly (readonly EmailRow[])[]): Promise<void> {
  const joining = groups.flatMap((rows) => {
    const group = newId('grp', Date.now());
    return rows.map((row) => ({
      outboxId: row.id,
      id: row.message_id,
      version: row.version,
      group,
      traceparent: row.traceparent,
    }));
  });
  await foldOutbox(client, joining);
}

/** Carries rows out at once, and deletes those that went through. @returns why no other could */
async function carryOut(
  deps: RelayDeps,
  client: Db,
  rows: readonly OutboxRow[],
): Promise<TemporalUnreachable | undefined> {
  const results = await Promise.allSettled(rows.map((row) => deps.carryOut(row)));
  const done: string[] = [];
  const refused: string[] = [];
  let unreachable: TemporalUnreachable | undefined;
  for (const [index, result] of results.entries()) {
    const row = rows[index] as OutboxRow;
    const ids = 'more_ids' in row ? [row.id, ...row.more_ids] : [row.id];
    const tell = (outcome: 'done' | 'refused' | 'unreachable') =>
      carried.tell({ action: row.action, outcome, count: ids.length });
    if (result.status === 'fulfilled') {
      done.push(...ids);
      tell('done');
    } else if (result.reason instanceof TemporalUnreachable) {
      unreachable = result.reason;
      tell('unreachable');
    } else {
      refused.push(...ids);
      tell('refused');
      deps.log.error(
        { message: row.message_id, action: row.action, tries: row.tries, reason: reasonOf(result.reason) },
        'Temporal refused an outbox row',
      );
    }
  }
  await deleteOutbox(client, done);
  await deferOutbox(client, refused);
  return unreachable;
}

function reasonOf(error: unknown): string {
  if (isUnreachable(error)) return 'Postgres cannot be reached';
  return error instanceof Error ? error.message : String(error);
}
