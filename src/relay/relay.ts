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
  lockOutbox,
  lockWakes,
  type OutboxRow,
} from '../store/outbox.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/pool.ts';
import { type Budget, makeBudget } from './budget.ts';
import { needsBudget, plan } from './plan.ts';

export interface RelayDeps {
  readonly pool: Pool;
  /** Asks Temporal for what a row says. Rejects with TemporalUnreachable when no row could succeed now. */
  readonly carryOut: (row: OutboxRow) => Promise<void>;
  /** Workflows that it may start in a second while more emails than that are waiting. */
  readonly startsPerSecond: number;
  readonly log: Logger;
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
const LONGEST_PAUSE = 10_000;

/**
 * Carries outbox rows to Temporal, the oldest first, for as long as it runs; what the budget of starts does not reach
 * for is put together into groups. Any number of relays may share an outbox:
 * each holds the rows it works on, and a row leaves only once Temporal has acknowledged it, so one may be carried out
 * twice and none is forgotten. While Postgres or Temporal is away it tries again, ever more slowly.
 */
export function startRelay(deps: RelayDeps): Relay {
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

  const budgets: Budgets = { emails: makeBudget(deps.startsPerSecond), chats: makeBudget(deps.startsPerSecond) };
  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        const next = await look(deps, budgets);
        if (failures > 0) deps.log.info({ failures }, 'the relay works again');
        failures = 0;
        if (next === 'wait') await pause(SWEEP);
        else if (next !== 'go on') await rest(Math.min(...next.map((budget) => budget.untilNext())));
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

/** Chat-app messages cannot share a workflow: with a budget of their own, a burst of them takes nothing from email. */
interface Budgets {
  readonly emails: Budget;
  readonly chats: Budget;
}

/** What to do before it looks again: nothing, wait to be woken, or wait until one of these budgets has a token. */
type Next = 'go on' | 'wait' | readonly Budget[];

/** Takes rows and puts them together or carries them out. */
async function look(deps: RelayDeps, { emails: budget, chats }: Budgets): Promise<Next> {
  const { next, unreachable } = await transaction(deps.pool, async (client): Promise<Looked> => {
    // First, since they are few, and putting a burst together takes its time.
    const wakes = [...(await lockWakes(client, WAKES)), ...(await lockDomains(client, DOMAINS))];
    const room = Math.min(TAKE, chats.available());
    const messages = await lockChats(client, room);
    chats.spend(messages.length);
    const unreachable = await carryOut(deps, client, [...wakes, ...messages]);
    if (unreachable) return { next: 'wait', unreachable };
    const short = messages.length === room ? [chats] : [];
    // Who can start all that it carries out at once leaves the rest to other relays.
    const limit = budget.available() < TAKE ? LOOK : TAKE;
    const waiting = await lockOutbox(client, limit);
    const { alone, groups, later } = plan(waiting, budget.available());
    if (groups.length > 0) {
      budget.spend(groups.length);
      await fold(client, groups);
      return { next: 'go on' };
    }
    const taken = alone.slice(0, TAKE);
    budget.spend(taken.filter(needsBudget).length);
    const away = await carryOut(deps, client, [...(await lockGroups(client, TAKE)), ...taken]);
    if (alone.length > TAKE) return { next: 'go on', unreachable: away };
    if (later > 0) return { next: [budget, ...short], unreachable: away };
    if (waiting.length === limit) return { next: 'go on', unreachable: away };
    return { next: short.length > 0 ? short : 'wait', unreachable: away };
  });
  if (unreachable) throw unreachable;
  return next;
}

interface Looked {
  readonly next: Next;
  readonly unreachable?: TemporalUnreachable | undefined;
}

/** Groups become rows of their own, carried out next: a group whose start is repeated has the same id and members. */
async function fold(client: Db, groups: readonly (readonly EmailRow[])[]): Promise<void> {
  const joining = groups.flatMap((rows) => {
    const group = newId('grp', Date.now());
    return rows.map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version, group }));
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
    if (result.status === 'fulfilled') done.push(...ids);
    else if (result.reason instanceof TemporalUnreachable) unreachable = result.reason;
    else {
      refused.push(...ids);
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
