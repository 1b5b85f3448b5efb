import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { isHeldByWindow, isWindowError, WINDOW_CLOSED, WINDOW_CLOSED_ERROR } from '../../domain/chat/window.ts';
import { newId } from '../../lib/ids.ts';
import { storableText } from '../../lib/text.ts';
import { projectMessages } from '../../projection/messages.ts';
import { readWindow, useFallback } from '../../store/chat/window.ts';
import {
  type Attempt,
  beginAttempts,
  endAttempts,
  hasFinalOutcome,
  isAmbiguous,
  lastAttempts,
} from '../../store/emails/attempts.ts';
import { isErased } from '../../store/messages/erasure.ts';
import { asFallback, lockMessages, type StoredMessage } from '../../store/messages/delivery.ts';
import { afterCommit, type Db, transaction } from '../../store/postgres/pool.ts';
import { messagesClaimed } from '../../telemetry/topics.ts';
import { NO_CONNECTION } from '../call.ts';
import { type Claim, done, type Member, postponed, suspendedResult, uncalled, unclaimableResult } from '../contract.ts';
import { judgePaused, makeGate } from '../pauses.ts';
import type { MessageDeps, MessageTypes } from './contract.ts';

type MessageClaim = Claim<MessageTypes>;

/** A message whose slot is due within this time waits in memory; otherwise its activity is retried. */
const MAX_SLOT_WAIT_MS = 1_000;

/** Claims a message if it may be sent now. The attempt is recorded by the commit. */
export async function claim(deps: MessageDeps, member: Member): Promise<MessageClaim> {
  const first = await tryClaim(deps, member);
  if (typeof first !== 'number') return first;
  if (first > MAX_SLOT_WAIT_MS) return waitForSlot(member, first);
  await sleep(first);
  const second = await tryClaim(deps, member);
  return typeof second === 'number' ? waitForSlot(member, second) : second;
}

function waitForSlot({ id }: Member, afterMs: number): MessageClaim {
  return done(postponed(id, 'Its number is at its rate limit.', afterMs));
}

/** @returns the claim, or the milliseconds until the message's slot if its number is at its rate limit */
async function tryClaim(deps: MessageDeps, member: Member): Promise<MessageClaim | number> {
  const { id } = member;
  const gate = makeGate(await deps.pauses.current());
  return transaction(deps.pool, async (client, commitWith): Promise<MessageClaim | number> => {
    const [[locked], [attempt]] = await Promise.all([
      lockMessages(client, deps.contents, [id]),
      lastAttempts(client, [id]),
    ]);
    let stored = locked;
    if (!stored) return done({ id, state: 'ended', status: 'canceled' });
    const blocked = unclaimableResult({ ...stored, copies_left: false }, member);
    if (blocked) {
      if (attempt) await endReported(client, stored, attempt);
      return done(blocked);
    }
    if (attempt && isAmbiguous(attempt)) {
      // It was claimed before, unless a restored backup or a fail-over has forgotten its claim.
      await markClaimed(client, stored);
      return { kind: 'ambiguous', message: { member, attempt, stored } };
    }
    if (attempt && hasFinalOutcome(attempt)) {
      await markClaimed(client, stored);
      return { kind: 'unapplied', message: { member, attempt, stored } };
    }
    if (stored.suspendedForMs !== null) return done(suspendedResult(id, stored.suspendedForMs));
    await markClaimed(client, stored);
    const { number, overdueMs } = stored;
    const isErasedRecipient = await wasErased(deps, client, stored);
    if (stored.has_opted_out || (isErasedRecipient && stored.channel === 'sms')) return suppress(client, id);
    if (isErasedRecipient) return fail(client, id, 'The recipient was erased and gets no more messages.');
    if (!number) return fail(client, id, 'The number that it should come from is no longer connected.');
    const provider = deps.providerOf(number);
    if (await isOutsideWindow(deps, client, stored, attempt)) {
      if (!stored.content.fallback_template) return fail(client, id, WINDOW_CLOSED_ERROR, WINDOW_CLOSED);
      await useFallback(client, id);
      stored = asFallback(stored);
    }
    const refusal = provider.refusal(stored);
    if (refusal !== undefined) return fail(client, id, storableText(refusal));

    const pause = await gate(client, provider.name, [number.id], attempt);
    if (pause) {
      const paused = judgePaused(pause, attempt, overdueMs, deps.accountRetryForMs);
      if (paused.kind === 'fail') return fail(client, id, paused.error);
      return done(postponed(id, pause.reason, paused.afterMs));
    }
    const stalledForMs = deps.line.stalledForMs({ provider, orgId: stored.org_id });
    if (stalledForMs > 0) {
      const { detail, afterMs } = uncalled(NO_CONNECTION, stalledForMs);
      return done(postponed(id, detail, afterMs));
    }
    const waitMs = deps.pace.reserve(number.id, id);
    if (waitMs > 0) return waitMs;
    const [n, failures] = [(attempt?.n ?? 0) + 1, attempt?.failures ?? 0];
    const call = newId('call');
    // Read before the commit, since the attempt's age in Postgres also includes the duration of the commit.
    const times = { claimedAt: performance.now(), claimedAtUnixMs: Date.now(), overdueMs };
    const begun = [{ message_id: id, n, call, provider: provider.name }];
    await commitWith(beginAttempts(client, begun, deps.recorder.worker));
    return { kind: 'ready', message: { id, orgId: stored.org_id, stored, provider, n, failures, call, ...times } };
  });
}

/**
 * Ends an ambiguous attempt of a message that a provider has reported. Otherwise its call would count as under way for ever, so
 * that no fallback template could be sent.
 */
async function endReported(client: Db, { id, provider_message_id }: StoredMessage, attempt: Attempt): Promise<void> {
  if (!isAmbiguous(attempt) || provider_message_id === null) return;
  await endAttempts(client, [{ message_id: id, n: attempt.n, outcome: 'sent', detail: null, provider_message_id }]);
}

/** Returns true if the message may not be sent as it is, because the customer-service window of its recipient is closed. */
async function isOutsideWindow(
  { windowPolicy }: MessageDeps,
  db: Db,
  { channel, type, content, ...message }: StoredMessage,
  attempt: Attempt | undefined,
): Promise<boolean> {
  if (channel !== 'chatapp' || type === 'template') return false;
  const hasFallback = content.fallback_template !== undefined;
  // The provider has refused it because the window was closed. Only a message with a fallback template is claimed again then.
  if (hasFallback && attempt && isWindowError(attempt.provider, attempt.code)) return true;
  return isHeldByWindow({ type, hasFallback }, await readWindow(db, message), windowPolicy);
}

/** Marks a scheduled message as claimed: from the commit on, it cannot be rescheduled or canceled. */
async function markClaimed(client: Db, { id, channel, status, overdueMs }: StoredMessage): Promise<void> {
  if (status !== 'scheduled') return;
  await projectMessages(client, 'claimed', [{ id }]);
  afterCommit(client, () => messagesClaimed.publish({ kind: channel, overdueSeconds: [overdueMs / 1_000] }));
}

/** Returns true if the recipient was erased. An organization without erasures costs no statement. */
async function wasErased(
  { contents }: MessageDeps,
  db: Db,
  { org_id, to, has_erasures }: StoredMessage,
): Promise<boolean> {
  const [hash] = (has_erasures && (await contents.hashAddresses(db, org_id, [to]))) || [];
  return hash !== undefined && isErased(db, org_id, hash);
}

async function fail(client: Db, id: string, error: string, code?: string): Promise<MessageClaim> {
  const error_code = code !== undefined && { error_code: code };
  await projectMessages(client, 'failed', [{ id, error, ...error_code, dedupe_key: 'failed' }]);
  return done({ id, state: 'ended', status: 'failed' });
}

async function suppress(client: Db, id: string): Promise<MessageClaim> {
  await projectMessages(client, 'suppressed', [{ id, dedupe_key: 'suppressed' }]);
  return done({ id, state: 'ended', status: 'suppressed' });
}
