import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { groupBy } from '../src/domain/group.ts';
import { maskAddresses } from '../src/domain/mask.ts';
import type { SendOutcome } from '../src/domain/retry.ts';
import { transaction } from '../src/store/pool.ts';
import { handedOver, tally } from '../src/telemetry/topics.ts';
import { CALL_BYTES, claim, type ClaimedEmail, UNREADABLE } from './claim.ts';
import type { CallResult, EmailDeps, LargeContents, LargeEmail, Member, MemberResult } from './contract.ts';
import { persist } from './persist.ts';
import { outcomeOf, record, type Sent } from './record.ts';
import { toMessage } from './recipients.ts';
import { settle } from './settle.ts';

/** Milliseconds between claim and call. A worker that was frozen longer than that lets others go first. */
export const CLAIM_HOLDS = 20_000;

/** UTF-16 units of what a provider said that are kept. */
export const DETAIL_LENGTH = 2_000;

/** For how long the calls of one email's copies follow each other; an activity may take two minutes. */
const COPIES_WITHIN_MS = 60_000;
const NEXT_PART = { state: 'again', reason: 'The other copies are to follow.', after: 1, postponed: true } as const;
/** Milliseconds until an email is tried again for which there was no memory; up to twice that, so that not all come together. */
const NO_MEMORY_RETRY_MS = 3_000;

/**
 * Claims emails, hands them over and records what became of each. Safe to repeat: an earlier call whose end nobody saw
 * is looked up at the provider before anything is sent again.
 * @returns one result for each member, in any order
 */
export async function deliver(deps: EmailDeps, members: readonly Member[]): Promise<MemberResult[]> {
  const { results, large } = await deliverParts(deps, members, new Map());
  let isFull = false;
  // They are read before they are claimed, so that neither a store that is away nor a lack of memory costs an attempt.
  for (const some of callsOf(large)) {
    const delivered: Awaited<ReturnType<typeof deliverLarge>> = isFull ? 'no memory' : await deliverLarge(deps, some);
    isFull = delivered === 'no memory';
    if (delivered === 'no memory') results.push(...some.map(({ member }) => noMemory(member.id)));
    else if (delivered === 'unreadable') results.push(...some.map(({ member: { id } }) => ({ id, ...UNREADABLE })));
    else results.push(...delivered);
  }
  return results;
}

async function deliverLarge(
  deps: EmailDeps,
  emails: readonly LargeEmail[],
): Promise<MemberResult[] | 'no memory' | 'unreadable'> {
  return deps.largeEmails.use(deps.pool, emails, async (contents) => {
    const members = emails.map(({ member }) => member);
    const { results } = await deliverParts(deps, members, contents);
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
}

/** Delivers emails, and the copies of marketing emails call after call for as long as they are taken. */
async function deliverParts(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
): Promise<Delivered<MemberResult>> {
  let until = Infinity;
  const results: MemberResult[] = [];
  const large: LargeEmail[] = [];
  for (let left = members; left.length > 0;) {
    const part = await deliverOnce(deps, left, contents);
    const partial = new Set(part.results.filter(({ state }) => state === 'partial').map(({ id }) => id));
    results.push(...part.results.filter((result) => result.state !== 'partial'));
    large.push(...part.large);
    left = left.filter(({ id }) => partial.has(id));
    if (left.length === 0) break;
    until = Math.min(until, performance.now() + COPIES_WITHIN_MS);
    if (performance.now() > until) {
      results.push(...left.map(({ id }) => ({ id, ...NEXT_PART })));
      break;
    }
  }
  return { results, large };
}

async function deliverOnce(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
): Promise<Delivered<CallResult>> {
  const first = await claim(deps, members, contents);
  const settled = await settle(deps, first.unsettled);
  // What the provider certainly does not have is claimed again, now with a new attempt.
  const second = await claim(deps, settled.lost, contents);
  const overtaken = second.unsettled.map(({ member: { id } }): MemberResult => ({
    id,
    state: 'again',
    reason: 'Another worker has just made an attempt.',
  }));
  const sent = await send(deps, [...first.ready, ...second.ready]);
  const results = [...first.results, ...settled.results, ...second.results, ...overtaken, ...sent];
  return { results, large: [...first.large, ...second.large] };
}

async function send(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<CallResult[]> {
  const calls = groupBy(emails, (email) => email.call);
  const results = await Promise.all([...calls.values()].map((members) => makeCall(deps, members)));
  return results.flat();
}

async function makeCall(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<CallResult[]> {
  const outcomes = await callProvider(emails);
  const sent = emails.map((email): Sent => ({
    email,
    outcomes: outcomes.splice(0, email.copies.length) as [SendOutcome, ...SendOutcome[]],
  }));
  let results: CallResult[] = [];
  await persist(async () => {
    results = await transaction(deps.pool, (client) => record(deps, client, sent));
  });
  const taken = sent.filter(({ outcomes }) => outcomeOf(outcomes).kind === 'sent');
  handedOver.tell({ kind: 'email', after: taken.map(({ email }) => secondsAfterDue(email)) });
  logCall(deps.log, sent);
  return results;
}

/** @returns an outcome for each copy of each email, in their order */
async function callProvider(emails: readonly ClaimedEmail[]): Promise<SendOutcome[]> {
  const [{ provider, call, claimedAt }] = emails as [ClaimedEmail];
  const copies = emails.flatMap((email) => email.copies);
  if (performance.now() - claimedAt > CLAIM_HOLDS) {
    return copies.map(() => ({ kind: 'busy', detail: 'The worker was too slow to send it.' }));
  }
  return (await provider.send(copies.map(toMessage), call)).map(storable);
}

/** A server may say anything, at any length; Postgres takes no NUL, and what it refused could never be recorded. */
function storable(outcome: SendOutcome): SendOutcome {
  const clean = <T extends { readonly detail: string }>(said: T): T => {
    return { ...said, detail: said.detail.replaceAll('\0', '').slice(0, DETAIL_LENGTH) };
  };
  const cleaned = 'detail' in outcome ? clean(outcome) : outcome;
  return 'refused' in cleaned ? { ...cleaned, refused: cleaned.refused.map(clean) } : cleaned;
}

/** Seconds from when an email was due until now. */
function secondsAfterDue({ late, claimedAt }: ClaimedEmail): number {
  return (late + performance.now() - claimedAt) / 1_000;
}

/** One line for a call, with what became of all its emails; of several, each has its own only where details are wanted. */
function logCall(log: Logger, sent: readonly Sent[]): void {
  const [first] = sent as [Sent];
  if (sent.length === 1) {
    logOutcome(log, 'info', first);
    return;
  }
  const kinds = sent.map(({ outcomes }) => outcomeOf(outcomes).kind);
  const { provider, call, claimedAt } = first.email;
  const line = {
    call,
    provider: provider.name,
    emails: sent.length,
    outcomes: Object.fromEntries(tally(kinds)),
    ms: Math.round(performance.now() - claimedAt),
  };
  if (kinds.includes('account')) log.error(line, 'the provider refuses our account');
  else log.info(line, 'emails handed to a provider');
  for (const entry of sent) logOutcome(log, 'debug', entry);
}

function logOutcome(log: Logger, level: 'info' | 'debug', { email, outcomes }: Sent): void {
  const outcome = outcomeOf(outcomes);
  const line = {
    email: email.id,
    org: email.orgId,
    provider: email.provider.name,
    call: email.call,
    attempt: email.n,
    ...(outcomes.length > 1 && { copies: outcomes.length }),
    outcome: outcome.kind,
    detail: 'detail' in outcome ? maskAddresses(outcome.detail) : undefined,
    ms: Math.round(performance.now() - email.claimedAt),
  };
  if (outcome.kind === 'account' && level === 'info') log.error(line, 'the provider refuses our account');
  else log[level](line, 'email handed to a provider');
}
