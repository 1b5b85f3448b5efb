import type { EmailStatus } from '../../domain/email/email.ts';
import { project } from '../../projection/emails.ts';
import { type Attempt, lastAttempts, lockStatuses } from '../../store/emails/attempts.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { findSuspendedEmails } from '../../store/accounts/suspension.ts';
import { hasFinalOutcome, isAmbiguous } from './claim.ts';
import type { EmailDeps } from './contract.ts';
import { fail } from './copies.ts';
import { accountRefusedError } from '../pauses.ts';

/**
 * Fails the emails of a workflow whose attempts are used up, with their last answers. Recorded attempts are counted, since
 * not every failed activity reached a provider.
 * @returns the resulting statuses, `queued` if attempts are left; emails of other workflows are missing
 */
export async function giveUp(
  { pool, providers, accountRetryForMs }: Pick<EmailDeps, 'pool' | 'providers' | 'accountRetryForMs'>,
  ids: readonly string[],
  maximumAttempts: number,
  workflowId: string,
): Promise<Map<string, EmailStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await lockStatuses(client, ids, workflowId);
    const failed: { id: string; error: string }[] = [];
    for (const last of await lastAttempts(client, [...statuses.keys()])) {
      const canBeLookedUp = providers.some(
        (provider) => provider.name === last.provider && provider.find !== undefined,
      );
      const error = attemptsUsedUpError(last, maximumAttempts, canBeLookedUp, accountRetryForMs);
      if (statuses.get(last.message_id) === 'queued' && error !== undefined)
        failed.push({ id: last.message_id, error });
    }
    // An email must not fail while its organization is suspended.
    const suspended = failed.length > 0 ? await findSuspendedEmails(client, ids) : new Set();
    const ended = failed.filter(({ id }) => !suspended.has(id));
    for (const [id, status] of await fail(client, ended)) statuses.set(id, status);
    return statuses;
  });
}

/** Returns the error of a message with this last attempt, as a sentence; undefined while it has attempts left. */
export function attemptsUsedUpError(
  last: Attempt,
  maximumAttempts: number,
  canBeLookedUp: boolean,
  accountRetryForMs: number,
): string | undefined {
  // The answer is recorded: the next claim applies it.
  if (hasFinalOutcome(last) || last.changes !== null) return undefined;
  // A message that waits for our account has a separate time limit; its attempts do not count.
  if (last.outcome === 'account') {
    const isOver = (last.account_for ?? 0) >= accountRetryForMs;
    return isOver
      ? accountRefusedError(last.detail ?? 'The provider refuses our account.', accountRetryForMs)
      : undefined;
  }
  const isLastAmbiguous = isAmbiguous(last);
  if (!isUsedUp(last, maximumAttempts, isLastAmbiguous && canBeLookedUp)) return undefined;
  const caveat = isLastAmbiguous ? ' The provider may have taken it all the same.' : '';
  return `${last.detail ?? 'The provider did not answer.'} Given up after ${last.failures} attempts.${caveat}`;
}

/**
 * If the last allowed attempt is ambiguous and can be looked up at the provider, the message fails after the first
 * "not found", or after as many look-ups as there are attempts. "Not found" may be confirmed before this is called: then the
 * message was sent once more, and it fails after that attempt.
 */
function isUsedUp({ failures, checks, not_found_for }: Attempt, maximumAttempts: number, isLookedUp: boolean): boolean {
  if (!isLookedUp) return failures >= maximumAttempts;
  if (checks >= maximumAttempts || failures > maximumAttempts) return true;
  return failures === maximumAttempts && not_found_for !== null;
}

/**
 * Cancels the emails of a workflow that are still scheduled.
 * @returns the resulting statuses; emails of other workflows are missing
 */
export async function cancelScheduled(
  pool: Pool,
  ids: readonly string[],
  workflowId: string,
): Promise<Map<string, EmailStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await lockStatuses(client, ids, workflowId);
    const emails = [...statuses.keys()].map((id) => ({ id }));
    for (const id of await project(client, 'canceled', emails)) statuses.set(id, 'canceled');
    return statuses;
  });
}
