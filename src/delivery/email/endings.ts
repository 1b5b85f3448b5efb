import type { EmailStatus } from '../../domain/email/email.ts';
import { project } from '../../projection/emails.ts';
import { type Attempt, lastAttempts, lockStatuses } from '../../store/emails/attempts.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { findSuspendedEmails } from '../../store/accounts/suspension.ts';
import { hasFinalOutcome, isAmbiguous } from './claim.ts';
import type { EmailDeps } from './contract.ts';
import { fail } from './copies.ts';
import { givenUp } from '../pauses.ts';

/**
 * Fails emails that the workflow `carrier` carries and whose attempts are used up, with their last answers. Attempts are
 * counted by their record: not every failed activity reached a provider.
 * @returns the status of each afterwards, `queued` when some of it is still to be sent; those that it does not carry
 * are missing
 */
export async function giveUp(
  { pool, providers, accountRetryForMs }: Pick<EmailDeps, 'pool' | 'providers' | 'accountRetryForMs'>,
  ids: readonly string[],
  maximumAttempts: number,
  carrier: string,
): Promise<Map<string, EmailStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await lockStatuses(client, ids, carrier);
    const failed: { id: string; error: string }[] = [];
    for (const last of await lastAttempts(client, [...statuses.keys()])) {
      const canBeAsked = providers.some((provider) => provider.name === last.provider && provider.find !== undefined);
      const error = whyGivenUp(last, maximumAttempts, canBeAsked, accountRetryForMs);
      if (statuses.get(last.message_id) === 'queued' && error !== undefined)
        failed.push({ id: last.message_id, error });
    }
    // Time passes while its organization is suspended, and that must not end an email.
    const suspended = failed.length > 0 ? await findSuspendedEmails(client, ids) : new Set();
    const ended = failed.filter(({ id }) => !suspended.has(id));
    for (const [id, status] of await fail(client, ended)) statuses.set(id, status);
    return statuses;
  });
}

/** Why a message with this last attempt is given up, as a sentence; undefined while it has attempts left. */
export function whyGivenUp(
  last: Attempt,
  maximumAttempts: number,
  canBeAsked: boolean,
  accountRetryForMs: number,
): string | undefined {
  // Its answer is recorded: the next claim applies it.
  if (hasFinalOutcome(last) || last.changes !== null) return undefined;
  // It waits for our account by a clock of its own; its attempts do not count.
  if (last.outcome === 'account') {
    const isOver = (last.account_for ?? 0) >= accountRetryForMs;
    return isOver ? givenUp(last.detail ?? 'The provider refuses our account.', accountRetryForMs) : undefined;
  }
  const isLastAmbiguous = isAmbiguous(last);
  if (!isUsedUp(last, maximumAttempts, isLastAmbiguous && canBeAsked)) return undefined;
  const doubt = isLastAmbiguous ? ' The provider may have taken it all the same.' : '';
  return `${last.detail ?? 'The provider did not answer.'} Given up after ${last.failures} attempts.${doubt}`;
}

/**
 * If the last allowed attempt is ambiguous and its provider can be asked, the message is given up after the provider's first
 * "not found", or after as many questions as there are attempts. "Not found" may be confirmed before this is called: then
 * the message was sent once more, and it is given up after that attempt.
 */
function isUsedUp({ failures, checks, not_found_for }: Attempt, maximumAttempts: number, isAsked: boolean): boolean {
  if (!isAsked) return failures >= maximumAttempts;
  if (checks >= maximumAttempts || failures > maximumAttempts) return true;
  return failures === maximumAttempts && not_found_for !== null;
}

/**
 * Cancels emails that the workflow `carrier` carries and that are still scheduled.
 * @returns the status of each afterwards; those that it does not carry are missing
 */
export async function cancelScheduled(
  pool: Pool,
  ids: readonly string[],
  carrier: string,
): Promise<Map<string, EmailStatus>> {
  return transaction(pool, async (client) => {
    const statuses = await lockStatuses(client, ids, carrier);
    const carried = [...statuses.keys()].map((id) => ({ id }));
    for (const id of await project(client, 'canceled', carried)) statuses.set(id, 'canceled');
    return statuses;
  });
}
