import { isWindowError } from '../domain/chat/window.ts';
import { type Attempt, hasFinalOutcome, isAmbiguous, lastAttempts } from '../store/emails/attempts.ts';
import { transaction } from '../store/postgres/pool.ts';
import type { AgainResult, ChannelEndings, DeliveryDeps, DeliveryStatus, Failure, MemberResult } from './contract.ts';
import { accountRefusedError } from './pauses.ts';

/**
 * Fails the messages of a workflow whose attempts are used up, with their last answers. Recorded attempts are counted, since
 * not every failed activity reached a provider.
 * @returns the resulting statuses, `queued` or `scheduled` if attempts are left; messages of other workflows are missing
 */
export async function giveUp(
  { pool, accountRetryForMs }: Pick<DeliveryDeps, 'pool' | 'accountRetryForMs'>,
  channel: ChannelEndings,
  ids: readonly string[],
  maximumAttempts: number,
  workflowId: string,
): Promise<Map<string, DeliveryStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await channel.lockStatuses(client, ids, workflowId);
    const failed: Failure[] = [];
    for (const last of await lastAttempts(client, [...statuses.keys()])) {
      const { message_id: id, code } = last;
      if (statuses.get(id) !== 'queued') continue;
      const isLookedUp = isAmbiguous(last) && (await channel.canBeLookedUp(client, last));
      // The answer of a call that outlasts its delivery may still come.
      if (last.outcome === null && !isLookedUp && channel.callIsOverInMs(last) > 0) continue;
      const usedUp = attemptsUsedUp(last, maximumAttempts, isLookedUp, accountRetryForMs);
      if (usedUp) failed.push({ id, ...usedUp, ...(code !== null && { code }) });
    }
    // A message must not fail while its organization is suspended.
    const suspended = failed.length > 0 ? await channel.findSuspended(client, ids) : new Set();
    const ended = failed.filter(({ id }) => !suspended.has(id));
    for (const [id, status] of await channel.fail(client, ended)) statuses.set(id, status);
    return statuses;
  });
}

/** Returns the errors of a message with this last attempt, as sentences; undefined while it has attempts left. */
function attemptsUsedUp(
  last: Attempt,
  maximumAttempts: number,
  isLookedUp: boolean,
  accountRetryForMs: number,
): Pick<Failure, 'error' | 'afterDeferral'> | undefined {
  // The answer is recorded: the next claim applies it.
  if (hasFinalOutcome(last) || last.changes !== null) return undefined;
  // The customer-service window has closed: the next claim sends the fallback template, which needs no open window.
  if (last.outcome === 'again' && isWindowError(last.provider, last.code)) return undefined;
  // A message that waits for our account has a separate time limit; its attempts do not count.
  if (last.outcome === 'account') {
    const isOver = (last.accountRefusedForMs ?? 0) >= accountRetryForMs;
    if (!isOver) return undefined;
    return { error: accountRefusedError(last.detail ?? 'The provider refuses our account.', accountRetryForMs) };
  }
  const tries = usedUpTries(last, maximumAttempts, isLookedUp);
  if (tries === undefined) return undefined;
  const caveat = isAmbiguous(last) ? ' The provider may have accepted it.' : '';
  const afterDeferral = `Given up after ${tries}.`;
  return { error: `${last.detail ?? 'The provider did not answer.'} ${afterDeferral}${caveat}`, afterDeferral };
}

/**
 * Returns what is used up, and how many of them: attempts or look-ups; undefined if some are left.
 *
 * If the last allowed attempt is ambiguous and can be looked up at the provider, the message fails after the first
 * "not found", or after as many look-ups as there are attempts. "Not found" may be confirmed before this is called: then the
 * message was sent once more, and it fails after that attempt.
 */
function usedUpTries(
  { failures, checks, notFoundForMs }: Attempt,
  maximumAttempts: number,
  isLookedUp: boolean,
): string | undefined {
  const hasAttemptsLeft =
    isLookedUp && notFoundForMs === null ? failures <= maximumAttempts : failures < maximumAttempts;
  if (!hasAttemptsLeft) return count(failures, 'attempt');
  return isLookedUp && checks >= maximumAttempts ? `${count(checks, 'look-up')} at the provider` : undefined;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/**
 * Cancels the messages of a workflow that are still scheduled.
 * @returns the resulting statuses; messages of other workflows are missing
 */
export async function cancelScheduled(
  { pool }: Pick<DeliveryDeps, 'pool'>,
  channel: ChannelEndings,
  ids: readonly string[],
  workflowId: string,
): Promise<Map<string, DeliveryStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await channel.lockStatuses(client, ids, workflowId);
    for (const id of await channel.cancel(client, [...statuses.keys()])) statuses.set(id, 'canceled');
    return statuses;
  });
}

/**
 * Returns true if recorded attempts, or the failed look-ups of the last one, have reached the limit. The activity then fails without a
 * retry, and the workflow gives the message up: its retry policy counts from the beginning of each round, and would allow as many
 * attempts again. More look-ups follow only while the organization is suspended; they wait as the policy states.
 */
export function hasReachedLimit({ failures = 0, checks }: AgainResult, maximumAttempts = Infinity): boolean {
  return failures >= maximumAttempts || checks === maximumAttempts;
}

/** Returns true if a message with this status is still to be sent. */
export function isPending(status: DeliveryStatus): boolean {
  return status === 'queued' || status === 'scheduled';
}

/** Returns the result of a message that was given up with this status; the same result if it has attempts left. */
export function endedAs(status: DeliveryStatus | undefined, result: MemberResult): MemberResult {
  if (status === undefined || isPending(status)) return result;
  return { id: result.id, state: 'ended', status };
}
