import type { Pool } from '../store/postgres/pool.ts';
import { detachFromGroup, type MessageTable } from '../store/outbox/outbox.ts';
import type { AgainResult, ChannelEndings, DeliveryDeps, DeliveryStatus, Member, MemberResult } from './contract.ts';
import { endedAs, giveUp, hasReachedLimit } from './endings.ts';

/** Messages of one channel that one workflow delivers, due at the same instant. */
export interface Group {
  /** The workflow's id. */
  readonly id: string;
  readonly members: readonly Member[];
}

/** The result of delivering a group when no member has to be retried with it. */
export interface GroupDelivery {
  /** The number of messages by status; `detached` counts those that were detached from the group. */
  readonly counts: Partial<Record<DeliveryStatus | 'detached', number>>;
  readonly providers: readonly string[];
  /** Our timer was early for these: they are due in `inMs` milliseconds by the database's clock. */
  readonly early?: { readonly members: readonly Member[]; readonly inMs: number };
}

/** The part of a group's delivery that depends on the channel. */
export interface GroupChannel {
  readonly endings: ChannelEndings;
  readonly table: MessageTable;
  /** Milliseconds after which a group claims no more members. Those that it has not attempted by then are detached. */
  readonly claimDeadlineMs: number;
  /** Sends the members that are due, and claims nothing once `stopping` is aborted. @returns one result for each, in any order */
  readonly deliver: (members: readonly Member[], stopping: Stopping) => Promise<readonly MemberResult[]>;
  /** Called when members may have ended. Never rejects. */
  readonly onEnded: (ids: readonly string[]) => Promise<void>;
}

export type Stopping = Pick<AbortSignal, 'aborted'>;

/** The result of one attempt of a group. */
interface GroupAttempt {
  readonly delivery: GroupDelivery;
  /** Members that are retried together after `waitMs`; undefined without any. */
  readonly remaining: { readonly reason: string; readonly isUsedUp: boolean; readonly waitMs: number } | undefined;
}

type GroupDeps = Pick<DeliveryDeps, 'log' | 'stopping' | 'accountRetryForMs'> & { readonly pool: Pool };

/** If at most this many members were not accepted while others were, they are detached from the group. */
const MAX_DETACHED = 20;

/**
 * Sends the messages of a group that are due. If few were not accepted, these are detached: workflows of their own retry them.
 * @param cancellation aborted when another worker has this group
 * @param waitMsOf returns the milliseconds until a member is attempted again
 */
export async function attemptGroup(
  deps: GroupDeps,
  channel: GroupChannel,
  { id, members }: Group,
  maximumAttempts: number | undefined,
  cancellation: Stopping,
  waitMsOf: (result: AgainResult) => number,
): Promise<GroupAttempt> {
  const deadline = AbortSignal.timeout(channel.claimDeadlineMs);
  const stopping = {
    get aborted() {
      return [deps.stopping, cancellation, deadline].some(({ aborted }) => aborted);
    },
  };
  const attempted = await channel.deliver(
    members.map((member) => Object.assign({}, member, { workflowId: id })),
    stopping,
  );
  const results = await endUsedUp(deps, channel, id, attempted, maximumAttempts);
  await channel.onEnded(members.map((member) => member.id));
  const again = results.filter((result) => result.state === 'again');
  const areFew = again.length < results.length && again.length <= MAX_DETACHED;
  const isOver = deadline.aborted && !deps.stopping.aborted && !cancellation.aborted;
  const detached = again.filter((result) => result.alone === true || areFew || (isOver && result.postponed));
  await detachFromGroup(
    deps.pool,
    id,
    detached.map((result) => ({ id: result.id, waitMs: waitMsOf(result), alone: result.alone === true })),
    channel.table,
  );
  const remaining = again.filter((result) => !detached.includes(result));
  const postponed = remaining.filter((result) => result.postponed);
  await channel.endings.postponeCheck(
    postponed.map((result) => result.id),
    Math.max(0, ...postponed.map(waitMsOf)),
  );
  const delivery = summary(results, detached.length);
  const count = { [nounOf(channel)]: members.length };
  deps.log.info({ group: id, ...count, ...delivery.counts, again: remaining.length }, 'group attempted');
  const [first] = remaining;
  if (!first) return { delivery, remaining: undefined };
  return {
    delivery,
    remaining: {
      reason: `${remaining.length} of ${members.length} ${nounOf(channel)} were not accepted. ${first.reason}`,
      isUsedUp: remaining.every((result) => hasReachedLimit(result, maximumAttempts)),
      waitMs: groupWaitMs(remaining, waitMsOf),
    },
  };
}

/** Ends those members of a group whose attempts are used up: they fail with their last answers. @returns the statuses */
export async function giveUpMembers(
  deps: GroupDeps,
  channel: GroupChannel,
  group: string,
  ids: readonly string[],
  maximumAttempts: number,
): Promise<Map<string, DeliveryStatus>> {
  const statuses = await giveUp(deps, channel.endings, ids, maximumAttempts, group);
  const failed = [...statuses.values()].filter((status) => status === 'failed').length;
  const noun = nounOf(channel);
  if (failed > 0) deps.log.warn({ group, [noun]: ids.length, failed }, `${noun} of a group given up`);
  return statuses;
}

function nounOf({ endings: { kind } }: GroupChannel): 'emails' | 'messages' {
  return kind === 'email' ? 'emails' : 'messages';
}

/**
 * Gives up the messages that have reached the limit, so that they are not attempted again with the rest of the group or, detached, by
 * a workflow of their own.
 * @returns the results, with `ended` for messages that were given up
 */
async function endUsedUp(
  deps: GroupDeps,
  channel: GroupChannel,
  group: string,
  results: readonly MemberResult[],
  maximumAttempts = Infinity,
): Promise<readonly MemberResult[]> {
  const usedUp = results.filter((result) => result.state === 'again' && hasReachedLimit(result, maximumAttempts));
  if (usedUp.length === 0) return results;
  const ids = usedUp.map(({ id }) => id);
  const statuses = await giveUpMembers(deps, channel, group, ids, maximumAttempts);
  return results.map((result) => endedAs(statuses.get(result.id), result));
}

/** Returns the result of a message that was not attempted after another one's refusal, without the failures of that one. */
export function notAttempted(id: string, { reason, afterMs }: AgainResult): AgainResult {
  return { id, state: 'again', reason, failures: 0, ...(afterMs !== undefined && { afterMs }) };
}

/** Orders members so that holders take turns: one with few members does not wait for those of another. */
export function takeTurns<T>(members: readonly T[], holderOf: (member: T) => string | undefined): T[] {
  const turns = new Map<string | undefined, number>();
  const withTurns = members.map((member) => {
    const holder = holderOf(member);
    const turn = turns.get(holder) ?? 0;
    turns.set(holder, turn + 1);
    return { member, turn };
  });
  return withTurns.sort((a, b) => a.turn - b.turn).map(({ member }) => member);
}

/**
 * Milliseconds until a group is tried again. Members that wait for a pause, for their organization or for the end of an earlier
 * call do not delay the others, which may be of other organizations.
 */
function groupWaitMs(members: readonly AgainResult[], waitMsOf: (result: AgainResult) => number): number {
  const attempted = members.filter(({ postponed }) => postponed !== true);
  return attempted.length > 0 ? Math.max(...attempted.map(waitMsOf)) : Math.min(...members.map(waitMsOf));
}

function summary(results: readonly MemberResult[], detachedCount: number): GroupDelivery {
  const counts: GroupDelivery['counts'] = detachedCount > 0 ? { detached: detachedCount } : {};
  const providers = new Set<string>();
  const early: Member[] = [];
  let inMs = 0;
  for (const result of results) {
    if (result.state === 'ended') {
      counts[result.status] = (counts[result.status] ?? 0) + 1;
      if (result.provider !== undefined) providers.add(result.provider);
    } else if (result.state === 'waiting') {
      // Postgres's version: after a restore, the group's own may be ahead of it, and no claim with that one would succeed.
      early.push({ id: result.id, version: result.version });
      inMs = Math.max(inMs, result.inMs);
    }
  }
  return { counts, providers: [...providers], ...(early.length > 0 && { early: { members: early, inMs } }) };
}
