import { ApplicationFailure } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { ChatStatus } from '../src/domain/chat/chat.ts';
import { maskNumbers } from '../src/lib/mask.ts';
import { projectChat } from '../src/projection/chat.ts';
import { lastAttempts } from '../src/store/emails/attempts.ts';
import { lockChat } from '../src/store/chat/attempts.ts';
import { afterCommit, transaction } from '../src/store/postgres/pool.ts';
import type { ChatDeps, ChatResult } from '../src/delivery/chat/contract.ts';
import { deliver } from '../src/delivery/chat/deliver.ts';
import { attemptsUsedUpError } from '../src/delivery/email/endings.ts';
import { policyWait, withHeartbeat } from './temporal.ts';

/** The result of `deliverChat` for the workflow. */
export type ChatDelivery = Extract<ChatResult, { state: 'ended' }>;

/** The activities of the fleet `chat`. Each does one thing and may be repeated. */
export function makeChatActivities(deps: ChatDeps) {
  return {
    /**
     * Sends one message.
     * @throws ApplicationFailure of type NotTaken when it should be tried again
     */
    async deliverChat({ id }: { id: string }): Promise<ChatDelivery> {
      const result = await withHeartbeat(() => deliver(deps, id));
      if (result.state === 'ended') return result;
      throw ApplicationFailure.create({
        type: 'NotTaken',
        message: maskNumbers(result.reason),
        category: ApplicationFailureCategory.BENIGN,
        ...(result.afterMs !== undefined && { nextRetryDelay: Math.ceil(Math.max(1, result.afterMs, policyWait())) }),
      });
    },

    /**
     * Fails a message whose attempts are used up, with the last answer. Returns `queued` if attempts remain, since not every
     * failed activity reached a provider.
     */
    async giveUpChat({ id, maximumAttempts }: { id: string; maximumAttempts: number }): Promise<ChatStatus> {
      return transaction(deps.pool, async (client) => {
        const message = await lockChat(client, id);
        if (message?.status !== 'queued') return message?.status ?? 'failed';
        // Time passes while its organization is suspended, and that must not end a message.
        if (message.suspended_for !== null) return 'queued';
        const [last] = await lastAttempts(client, [id]);
        const canBeLookedUp = message.number !== null && deps.providerOf(message.number).find !== undefined;
        const error = last && attemptsUsedUpError(last, maximumAttempts, canBeLookedUp, deps.accountRetryForMs);
        if (error === undefined) return 'queued';
        const code = last?.code ?? undefined;
        await projectChat(client, 'failed', [{ id, error, dedupe_key: 'failed', ...(code && { error_code: code }) }]);
        afterCommit(client, () => deps.log.warn({ message: id, maximumAttempts, code }, 'chat-app message given up'));
        return 'failed';
      });
    },
  };
}
export type ChatActivities = ReturnType<typeof makeChatActivities>;
