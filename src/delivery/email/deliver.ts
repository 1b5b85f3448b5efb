import { performance } from 'node:perf_hooks';
import { type Member, type MemberResult, postponed } from '../contract.ts';
import type { OnResults } from '../call.ts';
import { deliverOnce } from '../deliver.ts';
import { emailChannel } from './channel.ts';
import { MAX_CALL_BYTES } from './assign.ts';
import { UNREADABLE_RESULT } from './claim.ts';
import type { EmailDeps, HeldEmail, LargeContents, LargeEmail } from './contract.ts';
import { deliverIsolated } from './quarantine.ts';

/** Time after the first call in which further calls for the copies of an email start; the next attempt sends the other copies. */
const COPIES_DEADLINE_MS = 60_000;
/** Delay after a lack of memory; up to twice as long at random, so that not all retries coincide. */
const NO_MEMORY_RETRY_MS = 3_000;

/**
 * Delivers emails like `deliverOnce`, then those that it held: large emails within the memory limit of the worker, and suspects in the
 * isolated process.
 * @returns one result for each member, in any order
 */
export async function deliverEmails(
  deps: EmailDeps,
  members: readonly Member[],
  onResults: OnResults = () => undefined,
): Promise<MemberResult[]> {
  const { results, held } = await deliverParts(deps, members, new Map(), onResults);
  const large = held.flatMap((each) => (each.kind === 'content' ? each.email : []));
  const suspects = held.flatMap((each) => (each.kind === 'isolation' ? each.member : []));
  let hasMemory = true;
  // Large emails are read before they are claimed, so that an unavailable store or a lack of memory uses no attempt.
  for (const some of callsOf(large)) {
    // After a lack of memory, the others would only wait for it as well.
    const delivered: MemberResult[] | undefined = hasMemory ? await deliverLarge(deps, some, onResults) : undefined;
    hasMemory = delivered !== undefined;
    results.push(...(delivered ?? some.map(({ member }) => noMemory(member.id))));
  }
  // Suspects are delivered last, so that they do not delay the others.
  results.push(...(await deliverIsolated(deps, suspects, onResults)));
  return results;
}

/** @returns undefined if this worker has no memory for the emails now */
async function deliverLarge(
  deps: EmailDeps,
  emails: readonly LargeEmail[],
  onResults: OnResults,
): Promise<MemberResult[] | undefined> {
  const members = emails.map(({ member }) => member);
  const delivered = await deps.largeEmails.use(emails, (contents) => deliverParts(deps, members, contents, onResults));
  if (delivered === 'unreadable') return members.map(({ id }) => ({ id, ...UNREADABLE_RESULT }));
  return delivered === 'no memory' ? undefined : delivered.results;
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
  return postponed(id, 'This worker has no memory for it now.', NO_MEMORY_RETRY_MS * (1 + Math.random()));
}

/** Delivers emails. The copies of marketing emails are sent call by call while the provider accepts them. */
async function deliverParts(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
  onResults: OnResults,
): Promise<{ results: MemberResult[]; held: HeldEmail[]; ended: Promise<unknown> }> {
  const channel = emailChannel(deps, contents);
  let deadline: number | undefined;
  const results: MemberResult[] = [];
  const held: HeldEmail[] = [];
  const ended: Promise<unknown>[] = [];
  for (let left = members; left.length > 0;) {
    const part = await deliverOnce(deps, channel, left, onResults);
    ended.push(part.ended);
    const partial = new Set(part.results.filter(({ state }) => state === 'partial').map(({ id }) => id));
    results.push(...part.results.filter((result) => result.state !== 'partial'));
    held.push(...part.held);
    left = left.filter(({ id }) => partial.has(id));
    if (left.length === 0) break;
    deadline ??= performance.now() + COPIES_DEADLINE_MS;
    if (performance.now() > deadline) {
      results.push(...left.map(({ id }) => postponed(id, 'Its remaining copies are sent by the next attempt.', 1)));
      break;
    }
  }
  return { results, held, ended: Promise.all(ended) };
}
