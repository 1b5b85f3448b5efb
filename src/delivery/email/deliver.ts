import { performance } from 'node:perf_hooks';
import { groupBy } from '../../lib/group.ts';
import { makeCall } from './call.ts';
import { MAX_CALL_BYTES, claim, type ClaimedEmail, UNREADABLE } from './claim.ts';
import type { CallResult, EmailDeps, LargeContents, LargeEmail, Member, MemberResult } from './contract.ts';
import { deliverIsolated } from './quarantine.ts';
import { reconcile } from './reconcile-attempts.ts';
import { applyRecorded } from './unapplied.ts';

/** Called with the number of emails whose results have become complete. */
type OnResults = (count: number) => void;

/** New calls for the copies of one email start for this long; an activity may take two minutes. */
const COPIES_WITHIN_MS = 60_000;
const NEXT_PART = { state: 'again', reason: 'The other copies are to follow.', afterMs: 1, postponed: true } as const;
/** Delay after a lack of memory; up to twice as long at random, so that not all retries coincide. */
const NO_MEMORY_RETRY_MS = 3_000;
/** Delay of a message that this worker may not claim now. */
const BLOCKED_RETRY_MS = 2_000;

/**
 * Claims emails, sends them and records each outcome. Idempotent: an ambiguous call is looked up at the provider before the
 * email is sent again, and a recorded answer is only applied.
 * @returns one result for each member, in any order
 */
export async function deliver(
  deps: EmailDeps,
  members: readonly Member[],
  onResults: OnResults = () => undefined,
): Promise<MemberResult[]> {
  const { results, large, suspects } = await deliverParts(deps, members, new Map(), onResults);
  let isFull = false;
  // They are read before they are claimed, so that an unavailable store or a lack of memory uses no attempt.
  for (const some of callsOf(large)) {
    const delivered: Awaited<ReturnType<typeof deliverLarge>> = isFull
      ? 'no memory'
      : await deliverLarge(deps, some, onResults);
    isFull = delivered === 'no memory';
    if (delivered === 'no memory') results.push(...some.map(({ member }) => noMemory(member.id)));
    else if (delivered === 'unreadable') results.push(...some.map(({ member: { id } }) => ({ id, ...UNREADABLE })));
    else results.push(...delivered);
  }
  // Last, so that they do not delay the others.
  results.push(...(await deliverIsolated(deps, suspects, onResults)));
  return results;
}

async function deliverLarge(
  deps: EmailDeps,
  emails: readonly LargeEmail[],
  onResults: OnResults,
): Promise<MemberResult[] | 'no memory' | 'unreadable'> {
  return deps.largeEmails.use(deps.pool, emails, async (contents) => {
    const members = emails.map(({ member }) => member);
    const { results } = await deliverParts(deps, members, contents, onResults);
    return results;
  });
}

/** Splits large emails into calls: one organization and at most MAX_CALL_BYTES per call; an email with files gets its own. */
function callsOf(emails: readonly LargeEmail[]): LargeEmail[][] {
  const calls: LargeEmail[][] = [];
  let bytesLeft = 0;
  for (const email of emails) {
    const call = calls.at(-1);
    const isTogether = call?.[0]?.orgId === email.orgId && email.bytes <= bytesLeft;
    if (isTogether && [...call, email].every(({ attachments }) => attachments.length === 0)) call.push(email);
    else {
      calls.push([email]);
      bytesLeft = MAX_CALL_BYTES;
    }
    bytesLeft -= email.bytes;
  }
  return calls;
}

function noMemory(id: string): MemberResult {
  const afterMs = NO_MEMORY_RETRY_MS * (1 + Math.random());
  return { id, state: 'again', reason: 'This worker has no memory for it now.', afterMs, postponed: true };
}

interface Delivered<Result> {
  readonly results: Result[];
  readonly large: readonly LargeEmail[];
  readonly suspects: readonly Member[];
}

/** Delivers emails. The copies of marketing emails are sent call by call while the provider accepts them. */
async function deliverParts(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
  onResults: OnResults,
): Promise<Delivered<MemberResult>> {
  let deadline = Infinity;
  const results: MemberResult[] = [];
  const large: LargeEmail[] = [];
  const suspects: Member[] = [];
  for (let left = members; left.length > 0;) {
    const part = await deliverOnce(deps, left, contents, onResults);
    const partial = new Set(part.results.filter(({ state }) => state === 'partial').map(({ id }) => id));
    results.push(...part.results.filter((result) => result.state !== 'partial'));
    large.push(...part.large);
    suspects.push(...part.suspects);
    left = left.filter(({ id }) => partial.has(id));
    if (left.length === 0) break;
    deadline = Math.min(deadline, performance.now() + COPIES_WITHIN_MS);
    if (performance.now() > deadline) {
      results.push(...left.map(({ id }) => ({ id, ...NEXT_PART })));
      break;
    }
  }
  return { results, large, suspects };
}

async function deliverOnce(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
  onResults: OnResults,
): Promise<Delivered<CallResult>> {
  const reason = claimBlocker(deps);
  if (reason !== undefined) {
    const blocked = { state: 'again', reason, afterMs: BLOCKED_RETRY_MS, postponed: true } as const;
    return { results: members.map(({ id }) => ({ id, ...blocked })), large: [], suspects: [] };
  }
  const first = await claim(deps, members, contents);
  const applied = await applyRecorded(deps, first.unapplied);
  const reconciled = await reconcile(deps, first.ambiguous);
  // Emails that the provider does not have are claimed again with a new attempt.
  const second = await claim(deps, reconciled.lost, contents);
  const overtaken = [...second.ambiguous, ...second.unapplied].map(({ member: { id } }): MemberResult => ({
    id,
    state: 'again',
    reason: 'Another worker has just made an attempt.',
  }));
  const sent = await send(deps, [...first.ready, ...second.ready], onResults);
  const results = [...first.results, ...applied, ...reconciled.results, ...second.results, ...overtaken, ...sent];
  return {
    results,
    large: [...first.large, ...second.large],
    suspects: [...first.suspects, ...second.suspects],
  };
}

/** Returns the reason why this worker may claim nothing now; undefined if it may. An unclaimed message uses no attempt. */
export function claimBlocker({ recorder, stopping }: Pick<EmailDeps, 'recorder' | 'stopping'>): string | undefined {
  if (stopping.aborted) return 'The worker is shutting down.';
  return recorder.isBlocked() ? 'The results of earlier calls cannot be recorded now.' : undefined;
}

async function send(deps: EmailDeps, emails: readonly ClaimedEmail[], onResults: OnResults): Promise<CallResult[]> {
  const calls = groupBy(emails, (email) => email.call);
  const results = await Promise.all([...calls.values()].map((members) => makeCall(deps, members, onResults)));
  return results.flat();
}
