import { awaitAll } from '../lib/await-all.ts';
import { groupBy } from '../lib/group.ts';
import { isUnreachable } from '../store/postgres/pool.ts';
import { makeCall, type OnResults, UNAPPLIED_REASON } from './call.ts';
import {
  type CallResult,
  type Channel,
  type ChannelTypes,
  type Claim,
  type DeliveryDeps,
  done,
  type Member,
  type MemberResult,
  postponed,
} from './contract.ts';
import { reconcile } from './reconcile.ts';

/** Delay of a message that this worker may not claim now. */
const BLOCKED_RETRY_MS = 2_000;

interface DeliveryResults<T extends ChannelTypes> {
  readonly results: CallResult[];
  readonly held: T['held'][];
  /** Fulfilled once calls that are left under way have ended. */
  readonly ended: Promise<unknown>;
}

/**
 * Claims messages, sends them and records each outcome. Idempotent: an ambiguous call is looked up at the provider before the
 * message is sent again, and a recorded answer is only applied.
 * @returns one result for each member that is not held, in any order
 */
export async function deliverOnce<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  members: readonly Member[],
  onResults: OnResults = () => undefined,
): Promise<DeliveryResults<T>> {
  const first = await claim(deps, channel, members);
  const ended: Promise<unknown>[] = [];
  const call = async (claims: readonly Claim<T>[]): Promise<CallResult[]> => {
    const calls = groupBy(messagesOf(claims, 'ready'), (message) => message.call);
    const sent = [...calls.values()].map((messages) => makeCall(deps, channel, messages, onResults));
    const delivered = await awaitAll(sent);
    ended.push(...delivered.map((each) => each.ended));
    return delivered.flatMap(({ results }) => results);
  };
  const finish = async (): Promise<Omit<DeliveryResults<T>, 'ended'>> => {
    const applied = await applyRecorded(channel, messagesOf(first, 'unapplied'));
    const reconciled = await reconcile(deps, channel, messagesOf(first, 'ambiguous'));
    // Messages that the provider does not have are claimed again with a new attempt.
    const second = await claim(deps, channel, reconciled.claimable);
    const overtaken = [...messagesOf(second, 'ambiguous'), ...messagesOf(second, 'unapplied')];
    const results = [
      ...resultsOf(second),
      ...applied,
      ...reconciled.results,
      ...overtaken.map(({ member: { id } }): MemberResult => ({
        id,
        state: 'again',
        reason: 'Another worker has just made an attempt.',
      })),
      ...(await call(second)),
    ];
    return { results, held: messagesOf(second, 'held') };
  };
  // Claims expire, so their calls do not wait for locks and for look-ups of other messages.
  const [sent, finished] = await awaitAll([call(first), finish()]);
  return {
    results: [...resultsOf(first), ...finished.results, ...sent],
    held: [...messagesOf(first, 'held'), ...finished.held],
    ended: Promise.allSettled(ended),
  };
}

async function claim<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  members: readonly Member[],
): Promise<Claim<T>[]> {
  if (members.length === 0) return [];
  const reason = claimBlocker(deps);
  if (reason === undefined) return channel.claim(members);
  return members.map(({ id }) => done(postponed(id, reason, BLOCKED_RETRY_MS)));
}

/** Returns the messages of claims of one kind. */
function messagesOf<T extends ChannelTypes>(claims: readonly Claim<T>[], kind: 'ready'): T['claimed'][];
function messagesOf<T extends ChannelTypes>(
  claims: readonly Claim<T>[],
  kind: 'ambiguous' | 'unapplied',
): T['attempted'][];
function messagesOf<T extends ChannelTypes>(claims: readonly Claim<T>[], kind: 'held'): T['held'][];
function messagesOf<T extends ChannelTypes>(claims: readonly Claim<T>[], kind: string): unknown[] {
  return claims.flatMap((each) => (each.kind === kind && 'message' in each ? [each.message] : []));
}

/** Returns the results of members that were decided without a call. */
function resultsOf<T extends ChannelTypes>(claims: readonly Claim<T>[]): MemberResult[] {
  return claims.flatMap((each) => (each.kind === 'done' ? each.result : []));
}

async function applyRecorded<T extends ChannelTypes>(
  channel: Channel<T>,
  messages: readonly T['attempted'][],
): Promise<CallResult[]> {
  if (messages.length === 0) return [];
  try {
    return await channel.applyRecorded(messages);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return messages.map(({ member: { id } }) => ({ id, state: 'again', reason: UNAPPLIED_REASON }));
  }
}

/** Returns the reason why this worker may claim nothing now; undefined if it may. An unclaimed message uses no attempt. */
function claimBlocker({ recorder, stopping }: DeliveryDeps): string | undefined {
  if (stopping.aborted) return 'The worker is shutting down.';
  return recorder.isBlocked() ? 'The results of calls cannot be recorded now.' : undefined;
}
