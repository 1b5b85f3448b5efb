import { groupBy } from '../lib/group.ts';
import { mapConcurrently } from '../lib/map-concurrently.ts';
import { endUnsentAttempts, inspectWorkers } from '../store/emails/attempt-workers.ts';
import {
  type Attempt,
  type AttemptOutcome,
  countRepeats,
  endAttempts,
  recordLookups,
} from '../store/emails/attempts.ts';
import { transaction } from '../store/postgres/pool.ts';
import { ambiguousCallsResolved, type AmbiguousOutcome } from '../telemetry/topics.ts';
import {
  type AttemptedMessage,
  type Channel,
  type ChannelEndings,
  type ChannelTypes,
  type DeliveryDeps,
  type DeliveryStatus,
  type Member,
  type MemberResult,
  postponed,
} from './contract.ts';

/** Concurrent look-ups at a provider: after a restore, each email of a group needs one. */
const MAX_CONCURRENT_LOOKUPS = 10;

/** A call that may be under way is looked at this often: its worker may have ended, or its answer may have arrived. */
export const CALL_CHECK_INTERVAL_MS = 20_000;

/**
 * The deduplication key of an attempt's result. The result may be recorded several times: by its worker, by that worker again
 * after a lost commit acknowledgement, and by another worker that queried the provider.
 */
export function resultKey(change: 'sent' | 'bounced' | 'rejected', { n }: Pick<Attempt, 'n'>): string {
  return `${change} ${n}`;
}

interface Reconciled {
  /** To be claimed again: the provider does not have them, AMBIGUOUS_SEND allows a repeated send, or other copies are left. */
  readonly claimable: readonly Member[];
  readonly results: readonly MemberResult[];
}

/** Asks providers whether they accepted the messages of ambiguous attempts, with one look-up per call. */
export async function reconcile<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['attempted'][],
): Promise<Reconciled> {
  const calls = [...groupBy(messages, ({ attempt }) => attempt.call).values()];
  const reconciled = await mapConcurrently(calls, MAX_CONCURRENT_LOOKUPS, (members) =>
    reconcileCall(deps, channel, members),
  );
  return {
    claimable: reconciled.flatMap(({ claimable }) => claimable),
    results: reconciled.flatMap(({ results }) => results),
  };
}

async function reconcileCall<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['attempted'][],
): Promise<Reconciled> {
  const [{ attempt }] = messages as [T['attempted']];
  const lookUp = channel.lookUp(messages);
  if (!lookUp) return applyAmbiguousSend(deps, channel, messages);

  const found = await lookUp().catch((error: unknown) => {
    deps.log.warn({ err: error, call: attempt.call, provider: attempt.provider }, 'could not look up ambiguous call');
    return undefined;
  });
  const { accepted, notFound, unconfirmed } = await transaction(deps.pool, async (client) => {
    const accepted = found ? await channel.recordFound(client, messages, found) : [];
    const missing = messages.filter((message) => found && !accepted.includes(message));
    const notFound = missing.filter(({ attempt }) => (attempt.notFoundForMs ?? -1) >= deps.confirmNotFoundAfterMs);
    const unconfirmed = messages.filter((message) => !accepted.includes(message) && !notFound.includes(message));
    await endAttempts(
      client,
      accepted.map((message) => {
        const messageId = found?.get(message.member.id);
        return { ...ending('sent', null)(message), ...(messageId !== undefined && { provider_message_id: messageId }) };
      }),
    );
    await endAttempts(client, notFound.map(ending('lost', `${attempt.provider} does not have it.`)));
    await recordLookups(
      client,
      attempt.call,
      unconfirmed.map(({ member }) => member.id),
      found !== undefined,
    );
    return { accepted, notFound, unconfirmed };
  });
  countOutcomes(channel, 'found', accepted);
  countOutcomes(channel, 'lost', notFound);
  if (found) {
    deps.log.info(
      {
        call: attempt.call,
        provider: attempt.provider,
        accepted: accepted.length,
        notFound: notFound.length,
        unconfirmed: unconfirmed.length,
      },
      'ambiguous call looked up at provider',
    );
  }
  return {
    claimable: notFound.map(({ member }) => member),
    results: [
      ...accepted.map(({ member: { id } }) => ended(id, 'sent', attempt.provider)),
      ...unconfirmed.map(({ member: { id }, attempt: { checks } }): MemberResult => {
        if (!found) return { id, state: 'again', reason: 'The provider cannot be asked now.', checks: checks + 1 };
        const reason = 'The provider may not have it; it is asked once more.';
        return postponed(id, reason, deps.confirmNotFoundAfterMs);
      }),
    ],
  };
}

interface EndedCalls<T extends ChannelTypes> extends Reconciled {
  /** The messages whose calls have ended and may have been accepted. */
  readonly over: readonly T['attempted'][];
}

/**
 * Finds the calls that have ended. Those whose message was not handed over are recorded as not accepted when their worker has ended:
 * they count as no repeat. The results are those of calls that may be under way.
 */
async function findEndedCalls<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['attempted'][],
): Promise<EndedCalls<T>> {
  const ofWorkers = messages.flatMap(({ attempt }) =>
    attempt.outcome === null && attempt.worker !== null ? attempt : [],
  );
  const goneForMs = await inspectWorkers(deps.pool, ofWorkers);
  const calls = messages.map((message) => {
    const gone = goneForMs.get(message.member.id);
    return { message, isGone: gone !== undefined, overInMs: channel.callIsOverInMs(message.attempt, gone) };
  });
  const unsent = await endUnsentAttempts(
    deps.pool,
    calls.flatMap(({ message: { attempt }, isGone, overInMs }) =>
      attempt.handedOver === false && (isGone || overInMs <= 0) ? attempt : [],
    ),
    'Its worker ended before the message was handed over.',
  );
  const left = calls.filter(({ message }) => !unsent.has(message.member.id));
  return {
    claimable: messages.flatMap(({ member }) => (unsent.has(member.id) ? member : [])),
    over: left.flatMap(({ message, overInMs }) => (overInMs <= 0 ? message : [])),
    results: left.flatMap(({ message: { member, attempt }, overInMs }) => {
      if (overInMs <= 0) return [];
      const waitMs = ofWorkers.includes(attempt) ? Math.min(overInMs, CALL_CHECK_INTERVAL_MS) : overInMs;
      return postponed(member.id, 'An earlier call may still be under way.', waitMs);
    }),
  };
}

/** Applies the setting AMBIGUOUS_SEND once a call that cannot be looked up has ended. */
async function applyAmbiguousSend<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['attempted'][],
): Promise<Reconciled> {
  const { over, claimable, results } = await findEndedCalls(deps, channel, messages);
  if (over.length === 0) return { claimable, results };

  deps.log.warn(
    { messages: over.map(({ member }) => member.id), provider: over[0]?.attempt.provider, policy: deps.ambiguousSend },
    'ambiguous call cannot be looked up',
  );
  const repeats = await countRepeats(
    deps.pool,
    over.map(({ attempt }) => attempt),
  );
  const errorOf = ({ member }: AttemptedMessage) => repeatRefusal(deps, repeats.get(member.id) ?? 0);
  const repeated = over.filter((message) => errorOf(message) === undefined);
  await endAttempts(
    deps.pool,
    repeated.map(ending('risked', 'It is unknown whether the provider accepted it; it is sent again.')),
  );
  countOutcomes(channel, 'risked', repeated);

  const failed = over.flatMap((message) => {
    const error = errorOf(message);
    return error === undefined ? [] : { message, error };
  });
  const statuses = await failAmbiguous(deps, channel, failed);
  countOutcomes(
    channel,
    'given_up',
    failed.map(({ message }) => message),
  );
  const open = failed.flatMap(({ message }) => (statuses.has(message.member.id) ? [] : [message]));
  return {
    claimable: [...claimable, ...[...repeated, ...open].map(({ member }) => member)],
    results: [...results, ...[...statuses].map(([id, status]) => ended(id, status))],
  };
}

/**
 * Fails messages; of a marketing email, only the copies of the ambiguous call.
 * @returns the final statuses; emails with copies left are missing
 */
async function failAmbiguous(
  deps: DeliveryDeps,
  channel: ChannelEndings,
  failed: readonly { readonly message: AttemptedMessage; readonly error: string }[],
): Promise<Map<string, DeliveryStatus>> {
  if (failed.length === 0) return new Map();
  return transaction(deps.pool, async (client) => {
    const statuses = await channel.fail(
      client,
      failed.map(({ message: { member, attempt }, error }) => ({ id: member.id, error, call: attempt.call })),
    );
    await endAttempts(
      client,
      failed.map(({ message, error }) =>
        ending(statuses.has(message.member.id) ? 'unknown' : 'given_up', error)(message),
      ),
    );
    return statuses;
  });
}

/**
 * Decides by the setting AMBIGUOUS_SEND whether a message is sent again after an ambiguous call that cannot be looked up.
 * @param repeats the number of earlier repeated sends after ambiguous calls
 * @returns the error as a sentence for customers; undefined if the message may be sent again
 */
function repeatRefusal({ ambiguousSend, ambiguousSendMaxRepeats }: DeliveryDeps, repeats: number): string | undefined {
  if (ambiguousSend === 'retry' && repeats < ambiguousSendMaxRepeats) return undefined;
  if (repeats === 0) return 'The provider may have accepted it, but cannot confirm it; it was not sent again.';
  const times = repeats === 1 ? 'once' : `${repeats} times`;
  return `It may have been delivered: the provider did not confirm it and cannot be asked. It was sent again ${times}; no further attempt follows.`;
}

function countOutcomes(
  { kind }: ChannelEndings,
  outcome: AmbiguousOutcome,
  messages: readonly AttemptedMessage[],
): void {
  const [first] = messages;
  if (first)
    ambiguousCallsResolved.publish({ kind, provider: first.attempt.provider, outcome, count: messages.length });
}

function ending(outcome: AttemptOutcome, detail: string | null) {
  return ({ attempt: { message_id, n } }: AttemptedMessage) => ({ message_id, n, outcome, detail });
}

function ended(id: string, status: DeliveryStatus, provider?: string): MemberResult {
  return { id, state: 'ended', status, ...(provider !== undefined && { provider }) };
}
