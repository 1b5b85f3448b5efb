import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { newId } from '../src/domain/ids.ts';
import { maskNumbers } from '../src/domain/mask.ts';
import { verdict } from '../src/domain/retry.ts';
import { projectChat } from '../src/projection/chat.ts';
import type { ChatOutcome } from '../src/providers/chat-provider.ts';
import { type Attempt, type AttemptOutcome, beginAttempts, endAttempts, lastAttempts } from '../src/store/attempts.ts';
import { lockChat, type StoredChat } from '../src/store/chat-attempts.ts';
import { type Db, transaction } from '../src/store/pool.ts';
import { handedOver } from '../src/telemetry/topics.ts';
import type { ChatDeps, ChatResult, ClaimedChat } from './chat-contract.ts';
import { settleChat } from './chat-settle.ts';
import { isUnsettled } from './claim.ts';
import { CLAIM_HOLDS, DETAIL_LENGTH } from './deliver.ts';
import { persist } from './persist.ts';
import { endOfCall } from './settle.ts';

/** Milliseconds for which a message waits for its turn in memory; one that would wait longer comes back. */
const PATIENCE = 1_000;
/** UTF-16 units of a provider's error code that are kept. */
const CODE_LENGTH = 100;

type Claim =
  | { readonly is: 'ready'; readonly claimed: ClaimedChat }
  | { readonly is: 'unsettled'; readonly message: StoredChat; readonly attempt: Attempt }
  /** Its number sends as fast as it may. */
  | { readonly is: 'early'; readonly wait: number }
  | { readonly is: 'over'; readonly result: ChatResult };

/**
 * Claims a message, hands it over and records what became of it. Safe to repeat: an earlier call whose end nobody saw is
 * looked up at the provider before anything is sent again.
 */
export async function deliver(deps: ChatDeps, id: string): Promise<ChatResult> {
  let found = await claimInTurn(deps, id);
  if (found.is === 'unsettled') {
    const settled = await settleChat(deps, found.message, found.attempt);
    if (settled !== 'lost') return settled;
    // What the provider certainly does not have is claimed again, now with a new attempt.
    found = await claimInTurn(deps, id);
  }
  switch (found.is) {
    case 'ready':
      return makeCall(deps, found.claimed);
    case 'over':
      return found.result;
    case 'early':
      return { state: 'again', reason: 'Its number sends as fast as it may.', after: found.wait };
    case 'unsettled':
      return { state: 'again', reason: 'Another worker has just made an attempt.' };
  }
}

async function claimInTurn(deps: ChatDeps, id: string): Promise<Claim> {
  const found = await claim(deps, id);
  if (found.is !== 'early' || found.wait > PATIENCE) return found;
  await sleep(found.wait);
  return claim(deps, id);
}

/** Takes a message for us if it may be sent now: from the commit on, the attempt is on record. */
async function claim(deps: ChatDeps, id: string): Promise<Claim> {
  return transaction(deps.pool, async (client): Promise<Claim> => {
    const message = await lockChat(client, id);
    if (message?.status !== 'queued') return over(message?.status ?? 'failed');
    const [attempt] = await lastAttempts(client, [id]);
    if (attempt && isUnsettled(attempt)) return { is: 'unsettled', message, attempt };
    const { number } = message;
    if (!number) return fail(client, id, 'The number that it should come from is not connected any more.');
    const provider = deps.providerOf(number);
    const refusal = provider.refusal(message);
    if (refusal !== undefined) return fail(client, id, refusal);

    const wait = deps.pace.wait(number.id, id);
    if (wait > 0) return { is: 'early', wait };
    const n = (attempt?.n ?? 0) + 1;
    const call = newId('call', Date.now());
    await beginAttempts(client, [{ message_id: id, n, call, provider: provider.name }]);
    return { is: 'ready', claimed: { message, provider, n, call, claimedAt: performance.now() } };
  });
}

function over(status: StoredChat['status']): Claim {
  return { is: 'over', result: { state: 'ended', status } };
}

async function fail(client: Db, id: string, error: string): Promise<Claim> {
  await projectChat(client, 'failed', [{ id, error, dedupe_key: 'failed' }]);
  return over('failed');
}

async function makeCall(deps: ChatDeps, claimed: ClaimedChat): Promise<ChatResult> {
  const outcome = storable(await callProvider(claimed));
  let result: ChatResult | undefined;
  await persist(async () => {
    result = await transaction(deps.pool, (client) => record(deps, client, claimed, outcome));
  });
  const after = (claimed.message.late + performance.now() - claimed.claimedAt) / 1_000;
  if (outcome.kind === 'sent') handedOver.tell({ kind: 'chatapp', after: [after] });
  logOutcome(deps.log, claimed, outcome);
  if (!result) throw new Error('a call came to nothing');
  return result;
}

async function callProvider({ message, provider, claimedAt }: ClaimedChat): Promise<ChatOutcome> {
  if (performance.now() - claimedAt > CLAIM_HOLDS) {
    return { kind: 'busy', detail: 'The worker was too slow to send it.' };
  }
  return provider.send(message);
}

/** A server may say anything, at any length; Postgres takes no NUL, and what it refused could never be recorded. */
function storable(outcome: ChatOutcome): ChatOutcome {
  if (outcome.kind === 'sent') return outcome;
  const detail = outcome.detail.replaceAll('\0', '').slice(0, DETAIL_LENGTH);
  if (!('code' in outcome)) return { ...outcome, detail };
  return { ...outcome, detail, code: outcome.code.replaceAll('\0', '').slice(0, CODE_LENGTH) };
}

const ATTEMPT_OUTCOMES: { readonly [K in ChatOutcome['kind']]: AttemptOutcome } = {
  sent: 'sent',
  refused: 'refused',
  busy: 'again',
  account: 'again',
  unknown: 'unknown',
};

/** Writes down what became of a call. @returns what that means for the message */
async function record(
  deps: ChatDeps,
  client: Db,
  { message: { id }, provider: { name: provider }, n, call }: ClaimedChat,
  outcome: ChatOutcome,
): Promise<ChatResult> {
  const detail = 'detail' in outcome ? outcome.detail : null;
  // The message first, as everybody locks them.
  await lockChat(client, id);
  const code = 'code' in outcome ? { code: outcome.code } : {};
  await endAttempts(client, [{ message_id: id, n, outcome: ATTEMPT_OUTCOMES[outcome.kind], detail, ...code }]);
  if (outcome.kind === 'sent') {
    const wish = { id, provider, provider_message_id: outcome.messageId, dedupe_key: endOfCall('sent', call) };
    const statuses = await projectChat(client, 'sent', [wish]);
    return { state: 'ended', status: statuses.get(id) ?? 'sent', provider };
  }
  if (outcome.kind === 'refused') {
    const { detail: error, code } = outcome;
    const wish = {
      id,
      error,
      ...(code !== undefined && { error_code: code }),
      dedupe_key: endOfCall('rejected', call),
    };
    const statuses = await projectChat(client, 'failed', [wish]);
    return { state: 'ended', status: statuses.get(id) ?? 'failed', provider };
  }
  const next = verdict(outcome);
  if (!('again' in next)) throw new Error(`${outcome.kind} ends nothing`);
  const after = next.again === 'at the slowest' ? deps.maximumInterval : next.after;
  return { state: 'again', reason: outcome.detail, ...(after !== undefined && { after }) };
}

function logOutcome(log: Logger, { message, provider, call, n, claimedAt }: ClaimedChat, outcome: ChatOutcome): void {
  const line = {
    message: message.id,
    org: message.org_id,
    provider: provider.name,
    call,
    attempt: n,
    outcome: outcome.kind,
    code: 'code' in outcome ? outcome.code : undefined,
    detail: 'detail' in outcome ? maskNumbers(outcome.detail) : undefined,
    ms: Math.round(performance.now() - claimedAt),
  };
  if (outcome.kind === 'account') log.error(line, 'the provider refuses our account');
  else log.info(line, 'chat-app message handed to a provider');
}
