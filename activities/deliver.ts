import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { groupBy } from '../src/domain/group.ts';
import { maskAddresses } from '../src/domain/mask.ts';
import type { SendOutcome } from '../src/domain/retry.ts';
import { transaction } from '../src/store/pool.ts';
import { handedOver, tally } from '../src/telemetry/topics.ts';
import { claim, type ClaimedEmail, UNREADABLE, type UnreadEmail } from './claim.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import type { FilesOfEmails } from './files.ts';
import { persist } from './persist.ts';
import { outcomeOf, record, type Sent } from './record.ts';
import { settle } from './settle.ts';

/** Milliseconds between claim and call. A worker that was frozen longer than that lets others go first. */
export const CLAIM_HOLDS = 20_000;

/** UTF-16 units of what a provider said that are kept. */
export const DETAIL_LENGTH = 2_000;

/**
 * Claims emails, hands them over and records what became of each. Safe to repeat: an earlier call whose end nobody saw
 * is looked up at the provider before anything is sent again.
 * @returns one result for each member, in any order
 */
export async function deliver(deps: EmailDeps, members: readonly Member[]): Promise<MemberResult[]> {
  const { results, unread } = await deliverRead(deps, members, new Map());
  // One at a time, since files are large; and before they are claimed, so that a store that is away costs no attempt.
  for (const { member, attachments } of unread) {
    const delivered = await deps.files.read(member.id, attachments, (files) => deliverRead(deps, [member], files));
    if (delivered) results.push(...delivered.results);
    else results.push({ id: member.id, ...UNREADABLE });
  }
  return results;
}

async function deliverRead(
  deps: EmailDeps,
  members: readonly Member[],
  files: FilesOfEmails,
): Promise<{ results: MemberResult[]; unread: readonly UnreadEmail[] }> {
  const first = await claim(deps, members, files);
  const settled = await settle(deps, first.unsettled);
  // What the provider certainly does not have is claimed again, now with a new attempt.
  const second = await claim(deps, settled.lost, files);
  const overtaken = second.unsettled.map(({ member: { id } }): MemberResult => ({
    id,
    state: 'again',
    reason: 'Another worker has just made an attempt.',
  }));
  const sent = await send(deps, [...first.ready, ...second.ready]);
  const results = [...first.results, ...settled.results, ...second.results, ...overtaken, ...sent];
  return { results, unread: first.unread };
}

async function send(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<MemberResult[]> {
  const calls = groupBy(emails, (email) => email.call);
  const results = await Promise.all([...calls.values()].map((members) => makeCall(deps, members)));
  return results.flat();
}

async function makeCall(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<MemberResult[]> {
  const outcomes = await callProvider(emails);
  const sent = emails.map((email): Sent => ({
    email,
    outcomes: outcomes.splice(0, email.copies.length) as [SendOutcome, ...SendOutcome[]],
  }));
  let results: MemberResult[] = [];
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
  return (await provider.send(copies, call)).map(storable);
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
