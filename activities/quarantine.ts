import { type Attempt, endAttempts, type LockedEmail } from '../src/store/attempts.ts';
import { afterCommit, type Db } from '../src/store/pool.ts';
import { clearSuspects, countCrash } from '../src/store/suspects.ts';
import { quarantined } from '../src/telemetry/topics.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import { fail } from './copies.ts';
import { persist } from './persist.ts';

/**
 * Keeps one email from stopping the delivery of all others. An email that ends its worker (memory, a bug in a library)
 * would be given to the next worker, and end that one too.
 *
 * - Before an email is handed over, its attempt is committed; before large content is read, `suspected_at` is. A claim that
 *   finds an attempt without an end cannot tell which email ended the worker, or whether any did: a deployment, a full
 *   machine or a fault test ends workers too. All that were in flight are suspects.
 * - Their provider is asked first, as always. What it does not have is delivered after all other members of the claim,
 *   each by itself, by a child process of the worker (`Isolation`). It cannot harm the worker or another email there.
 * - Hundreds may be in flight when a worker ends, so a child that has lived on for a moment may begin the next email while
 *   the provider is at this one. The moment is longer where a provider cannot be asked: an email that ends the child then
 *   makes what is in flight ambiguous once more.
 * - Only what a living parent sees is counted: the child ended by itself within that moment of beginning this email, or had
 *   no other. What ends the worker from outside counts for nobody, however often that is, since nobody is left to count. Counting in the worker
 *   itself would go wrong: with a kill every few seconds and hundreds of suspects, each kill hits one of them in its
 *   delivery, and some of them twice.
 * - A suspect that was delivered or refused without harm is none any more. One that ended two child processes fails with a
 *   reason; by then it has ended the worker itself once.
 */
export const MAX_CRASHES = 2;

const QUARANTINED =
  'Quarantined: delivering this email ended a worker process twice; it is not tried again, so that other emails can be sent.';

/** Suspects of one activity that wait for the isolated process at a time, when it begins ten of them a second, and two. */
const WAITING_OVERLAPPING = 10;
const WAITING = 3;

/** Milliseconds until an email is tried again that found the isolated process busy; up to twice that. */
const BUSY_RETRY_MS = 3_000;

/** Whether an email is to be ended; while its last attempt is ambiguous, a provider that can be asked is asked first. */
export function isQuarantined(deps: EmailDeps, { crashes }: LockedEmail, ambiguous: Attempt | undefined): boolean {
  if (crashes < MAX_CRASHES) return false;
  const provider = deps.providers.find(({ name }) => name === ambiguous?.provider);
  return !provider?.find;
}

/** Ends emails that are quarantined. The caller holds their rows. */
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
    emails.map(({ id }) => ({ id, error: QUARANTINED })),
  );
  afterCommit(db, () => {
    for (const { id, org_id: org, crashes } of emails) deps.log.error({ email: id, org, crashes }, 'email quarantined');
    quarantined.tell({ kind: 'email', count: emails.length });
  });
  return [...statuses].map(([id, status]) => ({ id, state: 'ended', status }));
}

/** Has suspects delivered by the isolated process. */
export async function deliverIsolated(
  deps: EmailDeps,
  members: readonly Member[],
  onResults: (count: number) => void,
): Promise<MemberResult[]> {
  const results: MemberResult[] = [];
  const overlap = !deps.providers.some((provider) => !provider.find);
  const size = overlap ? WAITING_OVERLAPPING : WAITING;
  let isBusy = false;
  for (let from = 0; from < members.length; from += size) {
    const some = members.slice(from, from + size);
    const deliver = async (member: Member): Promise<MemberResult> => {
      const result = isBusy ? 'busy' : await deliverAlone(deps, member, overlap);
      onResults(1);
      if (result !== 'busy') return result;
      // The others have just as little chance, and this activity has a slot that others wait for.
      isBusy = true;
      return postponed(member, 'It waits for the isolated process.');
    };
    results.push(...(await Promise.all(some.map(deliver))));
  }
  return results;
}

async function deliverAlone(deps: EmailDeps, member: Member, overlap: boolean): Promise<MemberResult | 'busy'> {
  const result = (await deps.isolation?.deliver(member, overlap)) ?? 'busy';
  if (result === 'busy') return 'busy';
  if (result === 'ended') return postponed(member, 'The isolated process ended.');
  if (result === 'crashed') {
    let crashes = 0;
    await persist(async () => {
      crashes = await countCrash(deps.pool, member.id);
    });
    deps.log.error({ email: member.id, crashes }, 'the isolated process ended while it delivered an email');
    return postponed(member, 'The process that delivered it ended.');
  }
  if (result.state === 'again' && !result.postponed) await clearSuspects(deps.pool, [member.id]);
  return result;
}

function postponed({ id }: Member, reason: string): MemberResult {
  return { id, state: 'again', reason, after: BUSY_RETRY_MS * (1 + Math.random()), postponed: true };
}
