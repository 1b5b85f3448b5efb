import { isWindowError, WINDOW_CLOSED } from '../../domain/chat/window.ts';
import { groupBy } from '../../lib/group.ts';
import { maskNumbers } from '../../lib/mask.ts';
import { storableText } from '../../lib/text.ts';
import type { MessageChannel } from '../../domain/messages/message.ts';
import { projectMessages } from '../../projection/messages.ts';
import type { ChatOutcome, CreationPeriod } from '../../providers/chat-provider.ts';
import { type Attempt, findWithOutcomes } from '../../store/emails/attempts.ts';
import {
  findAmbiguousOthers,
  findNumberOf,
  findSuspendedMessages,
  belongsToAnotherMessage,
  lockMessageStatuses,
  lockProviderId,
  type StoredMessage,
} from '../../store/messages/delivery.ts';
import { postponeMessageChecks } from '../../store/messages/stuck.ts';
import { gather } from '../../store/postgres/gather.ts';
import { transaction } from '../../store/postgres/pool.ts';
import { ATTEMPT_OUTCOMES, CLAIM_EXPIRED, isClaimExpired, NO_CONNECTION, retryResult } from '../call.ts';
import { type CallResult, type Channel, type DeliveryStatus, uncalled } from '../contract.ts';
import { resultKey } from '../reconcile.ts';
import { claim } from './claim.ts';
import type {
  AnsweredChatMessage,
  AttemptedChatMessage,
  ClaimedChatMessage,
  MessageDeps,
  MessageTypes,
} from './contract.ts';

/**
 * A call has certainly ended this long after its claim, even if its worker is alive. An attempt with the outcome `unknown` waits for
 * it too, unlike one of email, since the provider's report may arrive until then.
 */
const CALL_IS_OVER_MS = 60_000;
/** The clocks of the provider and of Postgres may differ by this. */
const MAX_CLOCK_SKEW_MS = 30_000;
/** Maximum length of a provider's error code, in UTF-16 units. */
const MAX_CODE_LENGTH = 100;

/** The reason for a retry of a message whose attempt no longer has the outcome of the answer. */
const SUPERSEDED_REASON = 'Its attempt was superseded before the answer was applied.';

/** Answers that are applied by one transaction. */
const MAX_APPLIED = 100;

/**
 * Chat-app messages or SMS: one message per provider call, from the number that its row names. The answers to messages that are sent with
 * one channel share transactions.
 */
export function messageChannel(deps: MessageDeps, kind: MessageChannel): Channel<MessageTypes> {
  const providerOf = ({ number }: StoredMessage) => (number ? deps.providerOf(number) : undefined);

  const applyFinal = gather((answers: readonly FinalAnswer[]) => applyFinals(deps, answers), MAX_APPLIED);

  return {
    kind,
    claim: (members) => Promise.all(members.map((member) => claim(deps, member))),

    async call(messages, onAnswer) {
      for (const message of messages) {
        const { provider, orgId, stored } = message;
        const expired = () => (isClaimExpired(message) ? uncalled(CLAIM_EXPIRED) : undefined);
        const send = async () => expired() ?? (await provider.send(stored, expired));
        const called = await deps.line.run({ provider, orgId, isSingle: true }, send);
        const outcome = called ?? uncalled(NO_CONNECTION, deps.line.stalledForMs({ provider, orgId }));
        onAnswer(toAnswer(message, storable(afterWindow(message, outcome))));
      }
    },

    apply: (answers) =>
      Promise.all(
        answers.map(async ({ message, outcome, ending }) => {
          const { id, n, provider, call } = message;
          if (outcome.kind !== 'sent' && outcome.kind !== 'refused') {
            return retryResult(deps, message, { ...outcome, detail: maskNumbers(outcome.detail) });
          }
          const { detail, code = null, provider_message_id = null } = ending;
          const answer = { message_id: id, n, provider: provider.name, call, detail, code, provider_message_id };
          return applyFinal({ ...answer, outcome: outcome.kind });
        }),
      ),

    applyRecorded: (messages) =>
      Promise.all(
        messages.map(({ attempt }) =>
          applyFinal({ ...attempt, outcome: attempt.outcome === 'sent' ? 'sent' : 'refused' }),
        ),
      ),

    lookUp([message]) {
      const { stored, attempt } = message as AttemptedChatMessage;
      const provider = providerOf(stored);
      if (!provider?.find) return undefined;
      const created = creationPeriodOf(attempt);
      return async () => {
        // Read on first use, after the provider has listed its messages: by then the attempts of all listed messages are recorded.
        let others: Promise<StoredMessage[]> | undefined;
        const isTaken = async (providerMessageId: string, alsoFits?: (other: StoredMessage) => boolean) => {
          if (await belongsToAnotherMessage(deps.pool, stored, providerMessageId)) return true;
          if (!alsoFits) return false;
          others ??= findAmbiguousOthers(deps.pool, deps.contents, stored, { ...created, maxCallMs: CALL_IS_OVER_MS });
          return (await others).some(alsoFits);
        };
        const messageId = await provider.find?.(stored, created, isTaken);
        return new Map(messageId === undefined ? [] : [[stored.id, messageId]]);
      };
    },

    async recordFound(client, messages, found) {
      // One message per call.
      const [message] = messages as [AttemptedChatMessage];
      const { stored, attempt } = message;
      const messageId = found.get(stored.id);
      if (messageId === undefined) return [];
      await lockProviderId(client, messageId);
      // An equal message may have been looked up at the same time.
      if (await belongsToAnotherMessage(client, stored, messageId)) return [];
      const provider = attempt.provider as ClaimedChatMessage['provider']['name'];
      const dedupe_key = resultKey('sent', attempt);
      await projectMessages(client, 'sent', [{ id: stored.id, provider, provider_message_id: messageId, dedupe_key }]);
      return [message];
    },

    callIsOverInMs: ({ ageMs }) => Math.max(0, CALL_IS_OVER_MS - ageMs),

    async canBeLookedUp(client, { message_id: id }) {
      const number = await findNumberOf(client, id);
      return number !== undefined && deps.providerOf(number).find !== undefined;
    },

    async fail(client, failed) {
      const statuses = await lockMessageStatuses(
        client,
        failed.map(({ id }) => id),
      );
      const changes = failed.map(({ id, error, code }) => ({
        id,
        error,
        dedupe_key: 'failed',
        ...(code !== undefined && { error_code: code }),
      }));
      const changed = await projectMessages(client, 'failed', changes);
      return new Map<string, DeliveryStatus>([...statuses, ...changed]);
    },

    lockStatuses: lockMessageStatuses,
    findSuspended: findSuspendedMessages,
    postponeCheck: (ids, waitMs) => postponeMessageChecks(deps.pool, ids, waitMs),

    async cancel(client, ids) {
      const canceled = await projectMessages(
        client,
        'canceled',
        ids.map((id) => ({ id })),
      );
      return [...canceled.keys()];
    },
  };
}

type FinalAnswer = Pick<Attempt, 'message_id' | 'n' | 'provider' | 'detail' | 'code' | 'provider_message_id'> & {
  readonly outcome: 'sent' | 'refused';
};

/** Applies answers that end messages, unless a report has requeued a message since its answer was recorded. */
function applyFinals(deps: Pick<MessageDeps, 'pool'>, answers: readonly FinalAnswer[]): Promise<CallResult[]> {
  return transaction(deps.pool, async (client) => {
    const [, current] = await Promise.all([
      lockMessageStatuses(
        client,
        answers.map(({ message_id }) => message_id),
      ),
      findWithOutcomes(client, answers),
    ]);
    const currentKeys = new Set(current.map(attemptKey));
    const applied = answers.filter((answer) => currentKeys.has(attemptKey(answer)));
    const statuses = new Map<string, DeliveryStatus>();
    for (const [change, same] of groupBy(applied, statusAfter))
      for (const [id, status] of await projectMessages(client, change, same.map(changeOf))) statuses.set(id, status);
    return answers.map((answer): CallResult => {
      const { message_id: id, provider } = answer;
      if (!currentKeys.has(attemptKey(answer))) return { id, state: 'again', reason: SUPERSEDED_REASON, afterMs: 0 };
      return { id, state: 'ended', status: statuses.get(id) ?? statusAfter(answer), provider };
    });
  });
}

function attemptKey({ message_id, n, outcome }: Pick<Attempt, 'message_id' | 'n' | 'outcome'>): string {
  return `${message_id} ${n} ${outcome}`;
}

function statusAfter({ outcome }: FinalAnswer): 'sent' | 'failed' {
  return outcome === 'sent' ? 'sent' : 'failed';
}

function changeOf(answer: FinalAnswer) {
  const { message_id: id, provider, outcome, detail, code, provider_message_id } = answer;
  if (outcome === 'refused') {
    const error_code = code !== null && { error_code: code };
    return { id, error: detail ?? '', ...error_code, dedupe_key: resultKey('rejected', answer) };
  }
  return {
    id,
    provider: provider as ClaimedChatMessage['provider']['name'],
    ...(provider_message_id !== null && { provider_message_id }),
    dedupe_key: resultKey('sent', answer),
  };
}

/**
 * Returns when the provider may have created the message of an attempt. The worker's clock does not count. An attempt that a
 * restore has recorded represents any call until the restore, at which it ended.
 */
function creationPeriodOf({ startedAtMs, endedAtMs }: Attempt): CreationPeriod {
  const overAtMs = Math.max(startedAtMs + CALL_IS_OVER_MS, endedAtMs ?? 0);
  return { fromMs: startedAtMs - MAX_CLOCK_SKEW_MS, untilMs: overAtMs + MAX_CLOCK_SKEW_MS };
}

/**
 * Translates a refusal because the customer-service window has closed since the claim. A message with a fallback template becomes
 * `busy`, and the next claim sends the template; any other message fails with our code instead of the provider's.
 */
function afterWindow({ stored, provider }: ClaimedChatMessage, outcome: ChatOutcome): ChatOutcome {
  if (outcome.kind !== 'refused' || !isWindowError(provider.name, outcome.code)) return outcome;
  if (stored.type === 'template' || !stored.content.fallback_template) return { ...outcome, code: WINDOW_CLOSED };
  return { ...outcome, kind: 'busy', afterMs: 0 };
}

/** Bounds a server's text and code. */
function storable(outcome: ChatOutcome): ChatOutcome {
  if (outcome.kind === 'sent') return outcome;
  const detail = storableText(outcome.detail);
  if (!('code' in outcome)) return { ...outcome, detail };
  return { ...outcome, detail, code: storableText(outcome.code, MAX_CODE_LENGTH) };
}

function toAnswer(message: ClaimedChatMessage, outcome: ChatOutcome): AnsweredChatMessage {
  const detail = outcome.kind === 'sent' ? null : outcome.detail;
  const code = 'code' in outcome && { code: outcome.code };
  return {
    message,
    outcome,
    kind: outcome.kind,
    ...(detail !== null && { detail: maskNumbers(detail) }),
    ...code,
    ending: {
      message_id: message.id,
      n: message.n,
      outcome: ATTEMPT_OUTCOMES[outcome.kind],
      detail,
      ...code,
      ...(outcome.kind === 'sent' && { provider_message_id: outcome.messageId }),
    },
    accounts: accountAnswers(message, outcome),
  };
}

/** Each number is paused separately, since it may have its own account. */
function accountAnswers(
  { stored, provider }: ClaimedChatMessage,
  outcome: ChatOutcome,
): AnsweredChatMessage['accounts'] {
  const sender = stored.number?.id ?? '';
  const answer = { provider: provider.name, senders: [sender] };
  if (outcome.kind === 'sent') return [answer];
  if (outcome.kind !== 'account') return [];
  return [{ ...answer, refusal: { reason: maskNumbers(outcome.detail), sender } }];
}
