import { projectChat } from '../../projection/chat.ts';
import type { ChatProvider } from '../../providers/chat-provider.ts';
import {
  type Attempt,
  type AttemptOutcome,
  countRepeats,
  endAttempts,
  recordLookups,
} from '../../store/emails/attempts.ts';
import { isAnotherChats, lockChatStatuses, type StoredChat } from '../../store/chat/attempts.ts';
import { afterCommit, transaction } from '../../store/postgres/pool.ts';
import { ambiguousEnded, type AmbiguousOutcome } from '../../telemetry/topics.ts';
import type { ChatDeps, ChatResult } from './contract.ts';
import { endOfCall, repeatRefusal } from '../email/reconcile-attempts.ts';

/** A call has certainly ended this long after its claim, even if its worker is alive. A report may arrive until then. */
const CALL_IS_OVER_MS = 60_000;
/** The provider's clock may be this far behind ours. */
const MAX_CLOCK_SKEW_MS = 30_000;

/**
 * Asks the provider of an ambiguous attempt whether it accepted the message.
 * @returns `lost` if it did not, or if AMBIGUOUS_SEND allows to repeat the send: the message may then be attempted again
 */
export async function reconcileChat(
  deps: ChatDeps,
  message: StoredChat,
  attempt: Attempt,
): Promise<'lost' | ChatResult> {
  const { pool, log } = deps;
  const { id } = message;
  const provider = message.number ? deps.providerOf(message.number) : undefined;
  if (!provider?.find) return applyAmbiguousSend(deps, message, attempt);

  const match = await findAtProvider(deps, provider, message, attempt);
  log.info(
    { message: id, call: attempt.call, provider: provider.name, answer: match ?? 'no answer' },
    'ambiguous call looked up at provider',
  );
  if (match === undefined) {
    await recordLookups(pool, attempt.call, [id], false);
    return { state: 'again', reason: 'The provider cannot be asked now.' };
  }
  if (match === 'not found') {
    if ((attempt.not_found_for ?? -1) >= deps.confirmNotFoundAfterMs) {
      await endAttempts(pool, [ending(attempt, 'lost', `${provider.name} does not have it.`)]);
      countOutcome(attempt, 'lost');
      return 'lost';
    }
    await recordLookups(pool, attempt.call, [id], true);
    const reason = 'The provider may not have it; it is asked once more.';
    return { state: 'again', reason, afterMs: deps.confirmNotFoundAfterMs };
  }
  return transaction(pool, async (client) => {
    await lockChatStatuses(client, [id]);
    await endAttempts(client, [ending(attempt, 'sent', null)]);
    afterCommit(client, () => countOutcome(attempt, 'found'));
    const change = { id, provider: provider.name, provider_message_id: match.messageId };
    const statuses = await projectChat(client, 'sent', [{ ...change, dedupe_key: endOfCall('sent', attempt.call) }]);
    return { state: 'ended', status: statuses.get(id) ?? 'sent', provider: provider.name };
  });
}

type Match = { readonly messageId: string } | 'not found' | undefined;

/** @returns undefined if the provider cannot be queried */
async function findAtProvider(
  deps: ChatDeps,
  provider: ChatProvider,
  message: StoredChat,
  attempt: Attempt,
): Promise<Match> {
  const since = Date.now() - attempt.age - MAX_CLOCK_SKEW_MS;
  try {
    const messageId = await provider.find?.(message, since, (candidate) =>
      isAnotherChats(deps.pool, message, candidate),
    );
    return messageId === undefined ? 'not found' : { messageId };
  } catch {
    return undefined;
  }
}

/**
 * Applies the setting AMBIGUOUS_SEND to a call whose provider cannot be queried. Until the call has certainly ended, the
 * provider's report, which contains our id, may still arrive.
 */
async function applyAmbiguousSend(deps: ChatDeps, { id }: StoredChat, attempt: Attempt): Promise<'lost' | ChatResult> {
  const untilOverMs = CALL_IS_OVER_MS - attempt.age;
  if (untilOverMs > 0)
    return { state: 'again', reason: 'It may have been taken; a report of it may still come.', afterMs: untilOverMs };
  deps.log.warn(
    { message: id, provider: attempt.provider, policy: deps.ambiguousSend },
    'ambiguous call cannot be looked up',
  );
  const error = repeatRefusal(deps, (await countRepeats(deps.pool, [attempt])).get(id) ?? 0);
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
