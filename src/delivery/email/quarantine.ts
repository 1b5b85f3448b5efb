import { mapConcurrently } from '../../lib/map-concurrently.ts';
import { type Attempt, endAttempts, type LockedEmail } from '../../store/emails/attempts.ts';
import { afterCommit, type Db } from '../../store/postgres/pool.ts';
import { clearSuspects, readCrashes, recordCrash } from '../../store/emails/suspects.ts';
import { messagesQuarantined } from '../../telemetry/topics.ts';
import type { OnResults } from '../call.ts';
import { type Member, type MemberResult, postponed } from '../contract.ts';
import type { EmailDeps } from './contract.ts';
import { fail } from './copies.ts';
import { persist } from '../persist.ts';

/**
 * Prevents one email from stopping the delivery of all others. Without a quarantine, an email that ends its worker (memory, a
 * bug in a library) is given to the next worker and ends that one too.
 *
 * - An attempt is committed before an email is handed over, and `suspected_at` before large content is read. An attempt without
 *   an end does not show which email ended the worker, or whether any email did: deployments and full machines end workers
 *   as well. All emails that were in flight are therefore suspects.
 * - Their provider is asked first, as for every ambiguous attempt. Suspects that it does not have are delivered after all
 *   other members of the claim, one at a time, by a child process of the worker (`Isolation`), where they cannot harm the worker
 *   or other emails.
 * - Hundreds of emails may be in flight when a worker ends. A child that is still alive after a moment may therefore begin the
 *   next suspect while the provider handles the previous one. The moment is longer if a provider cannot be asked, because an
 *   email that ends the child makes those in flight ambiguous again.
 * - A crash counts against an email only if the worker is alive and the child ended by itself within that moment of beginning the
 *   email, or had no other email. The end of the worker itself counts against no email: if the worker were killed every few
 *   seconds with hundreds of suspects, each kill would count against some suspect, and twice against some of them.
 * - A suspect that was delivered or refused without a crash is no longer a suspect. One that ended two child processes fails
 *   with a reason; it has also ended the worker once before.
 */
const MAX_CRASHES = 2;

const QUARANTINE_ERROR =
  'Quarantined: delivering this email ended a worker process twice; it is not tried again, so that other emails can be sent.';

/** The maximum number of suspects of one activity that wait for the isolated process, with and without overlap. */
const MAX_WAITING_OVERLAPPING = 10;
const MAX_WAITING = 3;

/** Delay after the isolated process was busy; up to twice as long at random. */
const BUSY_RETRY_MS = 3_000;

/** @param isLookedUp true for an ambiguous attempt that can be looked up: its provider is asked first */
export function isQuarantined({ crashes }: LockedEmail, isLookedUp: boolean): boolean {
  return crashes >= MAX_CRASHES && !isLookedUp;
}

/** Fails emails. The caller has locked their rows. */
export async function quarantine(
  deps: EmailDeps,
  db: Db,
  emails: readonly LockedEmail[],
  attempts: ReadonlyMap<string, Attempt>,
): Promise<MemberResult[]> {
  if (emails.length === 0) return [];
  const open = emails.flatMap(({ id }) => attempts.get(id) ?? []).filter(({ outcome }) => outcome === null);
  await endAttempts(
    db,
    open.map(({ message_id, n }) => ({ message_id, n, outcome: 'unknown', detail: 'It ended its worker.' })),
  );
  const statuses = await fail(
    db,
    emails.map(({ id }) => ({ id, error: QUARANTINE_ERROR })),
  );
  afterCommit(db, () => {
    for (const { id, org_id: org, crashes } of emails) deps.log.error({ email: id, org, crashes }, 'email quarantined');
    messagesQuarantined.publish({ kind: 'email', count: emails.length });
  });
  return [...statuses].map(([id, status]) => ({ id, state: 'ended', status }));
}

/**
 * Delivers suspects in the isolated process, which starts one at a time.
 * @returns one result for each, in order; those that the process has no time for are postponed
 */
export async function deliverIsolated(
  deps: EmailDeps,
  members: readonly Member[],
  onResults: OnResults,
): Promise<MemberResult[]> {
  const mayOverlap = deps.providers.every((provider) => provider.find !== undefined);
  const size = mayOverlap ? MAX_WAITING_OVERLAPPING : MAX_WAITING;
  let isBusy = false;
  return mapConcurrently(members, size, async (member) => {
    const result = isBusy ? 'busy' : await deliverAlone(deps, member, mayOverlap);
    onResults(1);
    if (result !== 'busy') return result;
    // The remaining suspects would wait as well, and this activity occupies a slot that other activities wait for.
    isBusy = true;
    return busy(member, 'It waits for the isolated process.');
  });
}

async function deliverAlone(deps: EmailDeps, member: Member, mayOverlap: boolean): Promise<MemberResult | 'busy'> {
  const result = (await deps.isolation?.deliver(member, mayOverlap)) ?? 'busy';
  if (result === 'busy') return 'busy';
  if (result === 'ended') return busy(member, 'The isolated process ended.');
  if (result === 'crashed') {
    const crashes = 1 + (await persist(() => readCrashes(deps.pool, member.id)));
    // `persist` repeats it if the acknowledgement of the commit was lost, so it stores the count instead of adding to it.
    await persist(() => recordCrash(deps.pool, member.id, crashes));
    deps.log.error({ email: member.id, crashes }, 'isolated process crashed during a delivery');
    return busy(member, 'The process that delivered it ended.');
  }
  if (result.state === 'again' && !result.postponed) await clearSuspects(deps.pool, [member.id]);
  return result;
}

function busy({ id }: Member, reason: string): MemberResult {
  return postponed(id, reason, BUSY_RETRY_MS * (1 + Math.random()));
}
