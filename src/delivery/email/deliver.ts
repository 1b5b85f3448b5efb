import { performance } from 'node:perf_hooks';
import { groupBy } from '../../lib/group.ts';
import { makeCall } from './call.ts';
import { CALL_BYTES, claim, type ClaimedEmail, UNREADABLE } from './claim.ts';
import type { CallResult, EmailDeps, LargeContents, LargeEmail, Member, MemberResult } from './contract.ts';
import { deliverIsolated } from './quarantine.ts';
import { reconcile } from './reconcile-attempts.ts';
import { applyRecorded } from './unapplied.ts';

/** Called with a number of emails whenever the results of so many provider calls are complete. */
type OnResults = (count: number) => void;

/** For how long the calls of one email's copies follow each other; an activity may take two minutes. */
const COPIES_WITHIN_MS = 60_000;
const NEXT_PART = { state: 'again', reason: 'The other copies are to follow.', after: 1, postponed: true } as const;
/** Milliseconds until an email is tried again for which there was no memory; up to twice that, so that not all come together. */
const NO_MEMORY_RETRY_MS = 3_000;
/** Milliseconds until a message is tried again that this worker may not claim now. */
const BLOCKED_RETRY_MS = 2_000;

/**
 * Claims emails, hands them over and records what became of each. Safe to repeat: an earlier call whose end nobody saw
 * is looked up at the provider before anything is sent again, and an answer that is recorded is not asked for again.
 * @returns one result for each member, in any order
 */
export async function deliver(
  deps: EmailDeps,
  members: readonly Member[],
  onResults: OnResults = () => undefined,
): Promise<MemberResult[]> {
  const { results, large, suspects } = await deliverParts(deps, members, new Map(), onResults);
  let isFull = false;
  // They are read before they are claimed, so that neither a store that is away nor a lack of memory costs an attempt.
  for (const some of callsOf(large)) {
    const delivered: Awaited<ReturnType<typeof deliverLarge>> = isFull
      ? 'no memory'
      : await deliverLarge(deps, some, onResults);
    isFull = delivered === 'no memory';
    if (delivered === 'no memory') results.push(...some.map(({ member }) => noMemory(member.id)));
    else if (delivered === 'unreadable') results.push(...some.map(({ member: { id } }) => ({ id, ...UNREADABLE })));
    else results.push(...delivered);
  }
  // Last, so that none of them keeps another from being sent.
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

/** Large emails that are read and sent together: of one organization, of as many bytes as a call takes, and each with files by itself. */
function callsOf(emails: readonly LargeEmail[]): LargeEmail[][] {
  const calls: LargeEmail[][] = [];
  let bytesLeft = 0;
  for (const email of emails) {
    const call = calls.at(-1);
    const isTogether = call?.[0]?.orgId === email.orgId && email.bytes <= bytesLeft;
    if (isTogether && [...call, email].every(({ attachments }) => attachments.length === 0)) call.push(email);
    else {
      calls.push([email]);
      bytesLeft = CALL_BYTES;
    }
    bytesLeft -= email.bytes;
  }
  return calls;
}

function noMemory(id: string): MemberResult {
  const after = NO_MEMORY_RETRY_MS * (1 + Math.random());
  return { id, state: 'again', reason: 'This worker has no memory for it now.', after, postponed: true };
}

interface Delivered<Result> {
  readonly results: Result[];
  readonly large: readonly LargeEmail[];
  readonly suspects: readonly Member[];
}

/** Delivers emails, and the copies of marketing emails call after call for as long as they are taken. */
async function deliverParts(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
  onResults: OnResults,
): Promise<Delivered<MemberResult>> {
  let until = Infinity;
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
    until = Math.min(until, performance.now() + COPIES_WITHIN_MS);
    if (performance.now() > until) {
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
    const blocked = { state: 'again', reason, after: BLOCKED_RETRY_MS, postponed: true } as const;
    return { results: members.map(({ id }) => ({ id, ...blocked })), large: [], suspects: [] };
  }
  const first = await claim(deps, members, contents);
  const applied = await applyRecorded(deps, first.unapplied);
  const reconciled = await reconcile(deps, first.ambiguous);
  // What the provider certainly does not have is claimed again, now with a new attempt.
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

/** Why this worker may not claim anything now; undefined when it may. A message that is not claimed costs no attempt. */
export function claimBlocker({ recorder, stopping }: Pick<EmailDeps, 'recorder' | 'stopping'>): string | undefined {
  if (stopping.aborted) return 'The worker is shutting down.';
  return recorder.isBlocked() ? 'The results of earlier calls cannot be recorded now.' : undefined;
}

async function send(deps: EmailDeps, emails: readonly ClaimedEmail[], onResults: OnResults): Promise<CallResult[]> {
  const calls = groupBy(emails, (email) => email.call);
  const results = await Promise.all([...calls.values()].map((members) => makeCall(deps, members, onResults)));
  return results.flat();
}
