import { projectChat } from '../../projection/chat.ts';
import type { ChatProvider } from '../../providers/chat-provider.ts';
import {
  type Attempt,
  type AttemptOutcome,
  countRepeats,
  endAttempts,
  noteChecks,
} from '../../store/emails/attempts.ts';
import { isAnotherChats, lockChatStatuses, type StoredChat } from '../../store/chat/attempts.ts';
import { afterCommit, transaction } from '../../store/postgres/pool.ts';
import { ambiguousEnded, type AmbiguousOutcome } from '../../telemetry/topics.ts';
import type { ChatDeps, ChatResult } from './contract.ts';
import { endOfCall, whyNotRepeated } from '../email/reconcile-attempts.ts';

/** Milliseconds after its claim when a call is certainly over, even if its worker is alive; a report may arrive until then. */
const CALL_IS_OVER_MS = 60_000;
/** Milliseconds by which a provider's clock may lag behind ours. */
const MAX_CLOCK_SKEW_MS = 30_000;

/**
 * Asks the provider of an ambiguous attempt whether it took the message.
 * @returns `lost` when it did not, or when the message is to be sent again although that may be a second time: it is free for
 *   another attempt
 */
export async function reconcileChat(
  deps: ChatDeps,
  message: StoredChat,
  attempt: Attempt,
): Promise<'lost' | ChatResult> {
  const { pool, log } = deps;
  const { id } = message;
  const provider = message.number ? deps.providerOf(message.number) : undefined;
  if (!provider?.find) return decideUnasked(deps, message, attempt);

  const found = await ask(deps, provider, message, attempt);
  log.info(
    { message: id, call: attempt.call, provider: provider.name, answer: found ?? 'no answer' },
    'asked a provider about a call without an answer',
  );
  if (found === undefined) {
    await noteChecks(pool, attempt.call, [id], false);
    return { state: 'again', reason: 'The provider cannot be asked now.' };
  }
  if (found === 'not found') {
    if ((attempt.not_found_for ?? -1) >= deps.confirmNotFoundAfterMs) {
      await endAttempts(pool, [ending(attempt, 'lost', `${provider.name} does not have it.`)]);
      countOutcome(attempt, 'lost');
      return 'lost';
    }
    await noteChecks(pool, attempt.call, [id], true);
    const reason = 'The provider may not have it; it is asked once more.';
    return { state: 'again', reason, after: deps.confirmNotFoundAfterMs };
  }
  return transaction(pool, async (client) => {
    await lockChatStatuses(client, [id]);
    await endAttempts(client, [ending(attempt, 'sent', null)]);
    afterCommit(client, () => countOutcome(attempt, 'found'));
    const change = { id, provider: provider.name, provider_message_id: found.messageId };
    const statuses = await projectChat(client, 'sent', [{ ...change, dedupe_key: endOfCall('sent', attempt.call) }]);
    return { state: 'ended', status: statuses.get(id) ?? 'sent', provider: provider.name };
  });
}

type Answer = { readonly messageId: string } | 'not found' | undefined;

/** @returns undefined when the provider cannot be asked */
async function ask(deps: ChatDeps, provider: ChatProvider, message: StoredChat, attempt: Attempt): Promise<Answer> {
  const since = Date.now() - attempt.age - MAX_CLOCK_SKEW_MS;
  try {
    const messageId = await provider.find?.(message, since, (found) => isAnotherChats(deps.pool, message, found));
    return messageId === undefined ? 'not found' : { messageId };
  } catch {
    return undefined;
  }
}

/**
 * The provider cannot be asked, but its report, which contains our id, may still arrive. Once the call is certainly over
 * without one, the setting AMBIGUOUS_SEND decides.
 */
async function decideUnasked(deps: ChatDeps, { id }: StoredChat, attempt: Attempt): Promise<'lost' | ChatResult> {
  const left = CALL_IS_OVER_MS - attempt.age;
  if (left > 0)
    return { state: 'again', reason: 'It may have been taken; a report of it may still come.', after: left };
  deps.log.warn(
    { message: id, provider: attempt.provider, policy: deps.ambiguousSend },
    'a chat-app message may have been taken and its provider cannot be asked',
  );
  const error = whyNotRepeated(deps, (await countRepeats(deps.pool, [attempt])).get(id) ?? 0);
  if (error === undefined) {
    await endAttempts(deps.pool, [ending(attempt, 'risked', 'Nobody can say whether it was taken; it is sent again.')]);
    countOutcome(attempt, 'risked');
    return 'lost';
  }
  return transaction(deps.pool, async (client) => {
    await lockChatStatuses(client, [id]);
    await endAttempts(client, [ending(attempt, 'unknown', error)]);
    afterCommit(client, () => countOutcome(attempt, 'given_up'));
    const statuses = await projectChat(client, 'failed', [
      { id, error, dedupe_key: endOfCall('rejected', attempt.call) },
    ]);
    return { state: 'ended', status: statuses.get(id) ?? 'sent' };
  });
}

function countOutcome({ provider }: Attempt, outcome: AmbiguousOutcome): void {
  ambiguousEnded.publish({ kind: 'chatapp', provider, outcome, count: 1 });
}

function ending({ message_id, n }: Attempt, outcome: AttemptOutcome, detail: string | null) {
  return { message_id, n, outcome, detail };
}
